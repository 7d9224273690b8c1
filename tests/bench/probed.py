"""A geniuzfs mount with tasks beside it that tell how late they are run.

    python probed.py DIRECTORY fast|stock

Mounts at DIRECTORY/mount and listens on DIRECTORY/control for requests, one JSON object a line:
{"seconds": S, "probes": true|false}. Each is answered, S seconds later, by {"late_ms": {probe:
[...]}, "cpu_seconds": C}: how late each probe was each time, and how much CPU time all of this
process took meanwhile. Ends as a mount does, on SIGTERM or when unmounted.

Each probe runs every 10 ms, on a beat of its own:
    timer   trio.sleep_until: from the time that was asked for
    socket  eight bytes from another process on DIRECTORY/probe, the sender's CLOCK_MONOTONIC in
            nanoseconds: from then to the task that has received them
    thread  trio.to_thread.run_sync: from the thread's end to the task that gets its result
    call    run_sync_soon from a thread: from the call to its being carried out
    event   from trio.Event.set in one task to another that waited for it
"""

import argparse
import json
import struct
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from geniuzfs import logs
from tests.beside import serve_beside

BEAT_S = 0.010
NAMES = ("timer", "socket", "thread", "call", "event")
STAMP = struct.Struct("=Q")


class Probes:
    """How late each probe was, in nanoseconds, in the order of time."""

    def __init__(self) -> None:
        self.late_ns: dict[str, list[int]] = {name: [] for name in NAMES}

    def late(self, name: str, since_ns: int) -> None:
        self.late_ns[name].append(time.monotonic_ns() - since_ns)

    def take_ms(self) -> dict[str, list[float]]:
        """All since the last call."""
        taken = {name: [ns / 1e6 for ns in late] for name, late in self.late_ns.items()}
        self.late_ns = {name: [] for name in NAMES}
        return taken

    async def run(self) -> None:
        """All but `socket`, until cancelled."""
        async with trio.open_nursery() as nursery:
            for probe in (self._timer, self._thread, self._event, self._call):
                nursery.start_soon(probe)
                await trio.sleep(BEAT_S / 4)  # apart: who is woken finds the loop awake for others

    async def listen(self, listener: trio.SocketListener) -> None:
        """`socket`, for whoever connects, until cancelled. Waits in the kernel when nobody does."""
        await trio.serve_listeners(self._receive, [listener])

    async def _receive(self, stream: trio.SocketStream) -> None:
        async for data in stream:
            for (sent_ns,) in STAMP.iter_unpack(data):
                self.late("socket", sent_ns)

    async def _timer(self) -> None:
        async for due in beats():
            self.late_ns["timer"].append(int((trio.current_time() - due) * 1e9))

    async def _thread(self) -> None:
        async for _ in beats():
            self.late("thread", await trio.to_thread.run_sync(time.monotonic_ns))

    async def _call(self) -> None:
        """The thread keeps a beat of its own: no beat of the loop's brings it about."""
        token, end = trio.lowlevel.current_trio_token(), threading.Event()

        def calls() -> None:
            while not end.wait(BEAT_S):
                token.run_sync_soon(self.late, "call", time.monotonic_ns())

        thread = threading.Thread(target=calls)
        thread.start()
        try:
            await trio.sleep_forever()
        finally:
            end.set()
            thread.join()

    async def _event(self) -> None:
        send, receive = trio.open_memory_channel[tuple[trio.Event, list[int]]](0)

        async def waiting() -> None:
            async for event, set_ns in receive:
                await event.wait()
                self.late("event", set_ns[0])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiting)
            async for _ in beats():
                event, set_ns = trio.Event(), list[int]()
                await send.send((event, set_ns))
                await trio.lowlevel.checkpoint()
                set_ns.append(time.monotonic_ns())
                event.set()


async def beats() -> AsyncIterator[float]:
    """The time at which each beat was due, in trio's seconds; one that was missed is left out."""
    due = trio.current_time()
    while True:
        due = max(due + BEAT_S, trio.current_time())
        await trio.sleep_until(due)
        yield due


class Control:
    """Answers requests to measure."""

    def __init__(self, probes: Probes) -> None:
        self._probes = probes

    async def answer(self, stream: trio.SocketStream) -> None:
        rest = b""
        async for data in stream:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                found = await self._measure(**json.loads(line))
                await stream.send_all(json.dumps(found).encode() + b"\n")

    async def _measure(self, seconds: float, probes: bool) -> dict[str, object]:
        async with trio.open_nursery() as nursery:
            if probes:
                nursery.start_soon(self._probes.run)
                await trio.sleep(5 * BEAT_S)
            self._probes.take_ms()
            before = time.process_time()
            await trio.sleep(seconds)
            used = time.process_time() - before
            late = self._probes.take_ms()
            nursery.cancel_scope.cancel()
        return {"late_ms": late, "cpu_seconds": used}


async def listener(path: Path) -> trio.SocketListener:
    found = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    await found.bind(str(path))
    found.listen()
    return trio.SocketListener(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("wait", choices=("fast", "stock"))
    args = parser.parse_args()
    logs.set_up(debug=False)

    async def beside() -> None:
        probes = Probes()
        control = Control(probes)
        sockets = await listener(args.directory / "probe")
        requests = await listener(args.directory / "control")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(probes.listen, sockets)
            nursery.start_soon(trio.serve_listeners, control.answer, [requests])

    serve_beside(args.directory, beside, fast_wait=args.wait == "fast")


if __name__ == "__main__":
    main()
