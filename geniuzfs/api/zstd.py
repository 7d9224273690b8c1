"""Archives are packed with Zstandard: by Python itself from 3.14 on, else by the package zstandard.

Hides: which of the two. Refuses: what asks for more than WINDOW bytes of memory to be unpacked.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import IO, Any

from geniuzfs.errors import UsageError

WINDOW_LOG = 27
"""128 MiB, as `zstd` itself allows."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 3


@contextmanager
def packing(out: IO[bytes]) -> Iterator[IO[bytes]]:
    """What is written to the stream within is written to `out` packed. Raises UsageError where
    neither of the two is there.
    """
    ours, package = _found()
    if package:
        compressor = ours.ZstdCompressor(level=_LEVEL, threads=-1)
        writer = compressor.stream_writer(out, closefd=False)
    else:
        writer = ours.ZstdFile(out, "wb", level=_LEVEL)
    with writer as packed:
        yield packed


@contextmanager
def unpacking(source: BufferedReader) -> Iterator[IO[bytes]]:
    """What is in `source`, packed or not. Raises UsageError within for what is damaged."""
    if source.peek(len(_MAGIC))[: len(_MAGIC)] != _MAGIC:
        yield source
        return
    ours, package = _found()
    try:
        if package:
            decompressor = ours.ZstdDecompressor(max_window_size=1 << WINDOW_LOG)
            yield decompressor.stream_reader(source, read_across_frames=True, closefd=False)
        else:
            limit = {ours.DecompressionParameter.window_log_max: WINDOW_LOG}
            yield ours.ZstdFile(source, "rb", options=limit)
    except ours.ZstdError as error:
        raise UsageError(f"the archive can't be unpacked: {error}") from error


def _found() -> tuple[Any, bool]:
    """The module, and whether it is that of the package."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name), name == "zstandard"
        except ImportError:
            pass
    raise UsageError("zstd is not installed: pipx inject geniuzfs zstandard brings it")
