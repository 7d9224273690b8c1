"""geniuzfs serve-model: the helper that holds the model. Started when it is needed."""

import os
import socket
from pathlib import Path

import click

from geniuzfs.cli import cli

_FIRST_PASSED = 3
"""The descriptor of the first socket that systemd passes (sd_listen_fds)."""


@cli.command("serve-model", hidden=True)
@click.option("--runtime", type=Path, help="The directory of the socket.")
@click.option("--idle", type=float, help="End after so many seconds without a question.")
@click.option("--threads", type=int, help="How many embed passages.")
@click.option("--listen-fd", type=int, help="A socket that listens already.")
def serve_model(
    runtime: Path | None, idle: float | None, threads: int | None, listen_fd: int | None
) -> None:
    """Hold the model, and embed for this user's programs."""
    from geniuzfs import logs
    from geniuzfs.config import Embedding
    from geniuzfs.embed import place, server  # brings onnxruntime, which nothing else may

    logs.set_up(debug=False)
    set_up = Embedding.from_environment(os.environ)
    descriptor = listen_fd if listen_fd is not None else _passed()
    if descriptor is not None:
        listening: socket.socket | None = socket.socket(fileno=descriptor)
    else:
        listening = place.listen(runtime or set_up.runtime)
    if listen_fd is None:  # else whoever passed it has seen to that
        place.running(runtime or set_up.runtime)
    if listening is None:
        click.echo("a helper runs already")
        return
    os.chdir("/")  # holds no directory busy, least of all a mount
    server.serve(
        listening,
        idle_seconds=idle or set_up.idle_seconds,
        threads=threads or set_up.threads,
    )


def _passed() -> int | None:
    """The socket of a systemd unit (systemd/geniuzfs-model.socket)."""
    ours = os.environ.get("LISTEN_PID") == str(os.getpid())
    return _FIRST_PASSED if ours and os.environ.get("LISTEN_FDS") == "1" else None


if __name__ == "__main__":
    # How the client starts it: without the other commands, whose modules it would never use.
    serve_model(prog_name="geniuzfs serve-model")
