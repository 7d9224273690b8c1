"""What a client may do wrong on the wire: it gets a clear error, and nothing else happens."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from geniuzfs.config import Config
from geniuzfs.mcp.stdio import LAST_SECONDS, WAITING
from geniuzfs.runtime import geniuz
from tests.daemon import wait_until
from tests.mcp.serving import (
    COMMAND,
    ENDED_SECONDS,
    INITIALIZE,
    Spoken,
    environment,
    error_text,
    request,
    resident_mb,
)

LONG = "x" * 3_000_000


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spoken]:
    """A server for those who leave nothing behind, which is checked in the end."""
    home = tmp_path_factory.mktemp("shared") / "home"
    with Spoken(home) as spoken:
        yield spoken
        assert len(os.listdir(f"/proc/{spoken.process.pid}/fd")) < 30
        assert resident_mb(spoken.process.pid) < 400
    assert stored(home) == (0, 0)


@pytest.fixture
def server(home: Path) -> Iterator[Spoken]:
    with Spoken(home) as spoken:
        yield spoken


def stored(home: Path) -> tuple[int, int]:
    """Files and kept memories; fails where the folder is unsound."""
    program = geniuz(Config.from_environment({"GENIUZ_HOME": str(home)}))
    (only,) = program.status()
    assert [each.problems for each in program.check(None, repair=False)] == [[]]
    return only.counts.files, only.counts.memories


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("write_file", {"path": "/" + "a" * 299, "text": "x"}, "at most 255 characters"),
        ("write_file", {"path": "/../../etc/passwd", "text": "x"}, "empty, . or .."),
        ("write_file", {"path": "notes.md", "text": "x"}, "does not start with /"),
        ("write_file", {"path": "/a\0b", "text": "x"}, "control character"),
        ("write_file", {"path": "/a\\b", "text": "x"}, "backslash"),
        ("write_file", {"path": "/.recall/x", "text": "x"}, ".recall"),
        ("write_file", {"path": "/n", "text": "a\0b"}, "no NUL"),
        ("write_file", {"path": "/n", "text": LONG}, "at most 2,000,000 characters"),
        ("write_file", {"path": "/n", "text": "x", "labels": {"": "x"}}, "is no label's key"),
        ("write_file", {"path": "/n", "text": "x", "if_version": "0"}, "/n"),
        ("keep", {"text": LONG}, "at most 2,000,000 characters"),
        ("keep", {"text": "a\0b"}, "NUL"),
        ("keep", {"text": "x", "gist": LONG}, "characters"),
        ("edit_file", {"path": "/n", "old": "", "new": LONG}, "old: "),
        ("read_file", {"path": "/nothing"}, "/nothing"),
        ("history", {"path": "/../x"}, "empty, . or .."),
        ("history", {"path": "/nothing"}, "/nothing has no earlier versions"),
        ("move_file", {"path": "/a/", "to": "/b"}, "/b"),
        ("delete_file", {"path": "/"}, "/"),
        ("list_files", {"prefix": "/../"}, "empty, . or .."),
        ("open", {"address": "\0" * 90}, "is no address"),
    ],
)
def test_a_request_that_breaks_the_rules_stores_nothing(
    shared: Spoken, tool: str, arguments: dict[str, object], said: str
) -> None:
    text = error_text(shared.call(tool, **arguments))
    assert said in text
    assert len(text) < 1_100


def test_what_is_percent_encoded_is_a_name_as_any_other(server: Spoken, home: Path) -> None:
    made = server.call("write_file", path="/%252e%252e/x", text="x")
    assert made["structuredContent"]["path"] == "/%252e%252e/x"
    uri = "geniuz://" + server.call("folders")["structuredContent"]["folders"][0]["uuid"][:8]
    read = server.ask("resources/read", {"uri": uri + "/%25252e%25252e/x"})
    assert read["result"]["contents"][0]["text"] == "x"
    for escaping in ("/%2e%2e/x", "/%252e%252e%2f..%2fx", "/..%00", "/%ff"):
        assert server.ask("resources/read", {"uri": uri + escaping})["error"]["code"] < 0


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"{\n", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"\n', -32700),
        (b'"\xff\xfe"\n', -32700),
        (b'"\\ud800"\n', -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b"1" * 100_000 + b"\n", -32700),
        (b"NaN\n", -32700),
        (b"[]\n", -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]\n', -32600),
        (b"{}\n", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}\n', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}\n', -32600),
        (json.dumps(request("i" * 5_000, "ping")).encode() + b"\n", -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}\n', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}\n', -32602),
        (json.dumps(request(1, "tools/call", {"name": "no_such"})).encode() + b"\n", -32602),
        (
            json.dumps(request(1, "tools/call", {"name": "keep", "arguments": []})).encode()
            + b"\n",
            -32602,
        ),
    ],
)
def test_what_is_no_request_is_an_error_of_the_protocol_and_the_next_is_answered(
    shared: Spoken, sent: bytes, code: int
) -> None:
    shared.send(sent)
    answer = shared.receive()
    assert answer["error"]["code"] == code
    assert len(json.dumps(answer)) < 1_000
    assert shared.ask("ping")["result"] == {}


def test_a_message_without_end_is_refused_and_not_held(shared: Spoken) -> None:
    before = resident_mb(shared.process.pid)
    piece = b"x" * 1_000_000
    for _ in range(100):
        shared.send(piece)
    shared.send(b"\n")
    assert shared.receive()["error"]["message"].startswith("a message has at most")
    assert shared.ask("ping")["result"] == {}
    assert resident_mb(shared.process.pid) < before + 120


def test_a_thousand_calls_at_once_are_all_answered(server: Spoken, home: Path) -> None:
    """The client writes all of them while it reads the answers, as one with many tasks does."""
    calls = [
        request(
            f"call {number}",
            "tools/call",
            {"name": "keep", "arguments": {"text": f"memory {number}"}}
            if number % 10 == 0
            else {"name": "read_file", "arguments": {"path": f"/{number}"}},
        )
        for number in range(1_000)
    ]
    script = b"".join(json.dumps(call).encode() + b"\n" for call in calls)
    answers = {}
    feeding = Thread(target=server.send, args=(script,))
    feeding.start()
    for _ in calls:
        answer = server.receive()
        answers[answer["id"]] = answer["result"]["isError"]
    feeding.join()
    assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 50
    assert answers == {f"call {number}": number % 10 != 0 for number in range(1_000)}
    server.end()
    assert stored(home) == (0, 100)


def test_a_client_that_stops_reading_is_read_no_further(server: Spoken, home: Path) -> None:
    """Each answer has 1 MB: were all of them made, they would be 400 MB and more."""
    server.call("write_file", path="/large", text="x" * 1_000_000)
    before = resident_mb(server.process.pid)
    assert server.process.stdin is not None
    descriptor = server.process.stdin.fileno()
    os.set_blocking(descriptor, False)
    asked = 0
    line = json.dumps(
        request(1, "tools/call", {"name": "read_file", "arguments": {"path": "/large"}})
        | {"padding": "x" * 3_000}
    ).encode()

    def stopped() -> bool:
        nonlocal asked
        try:
            while True:
                assert os.write(descriptor, line + b"\n") == len(line) + 1
                asked += 1
        except BlockingIOError:
            return asked > WAITING
        finally:
            assert asked < 400

    wait_until(stopped)
    assert resident_mb(server.process.pid) < before + 25 * WAITING
    os.set_blocking(descriptor, True)
    for _ in range(asked):
        assert len(server.receive()["result"]["structuredContent"]["text"]) == 1_000_000
    assert server.ask("ping")["result"] == {}


def test_what_was_asked_before_the_input_ended_is_answered(home: Path) -> None:
    with Spoken(home) as server:
        server.send(
            *(
                request(number, "tools/call", {"name": "keep", "arguments": {"text": f"{number}"}})
                for number in range(50)
            )
        )
        answers = server.end()
    assert {answer["id"] for answer in answers} == set(range(50))
    assert stored(home) == (0, 50)


def test_a_client_that_goes_ends_the_server(home: Path) -> None:
    with Spoken(home) as server:
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.send(request(1, "ping"))
        assert server.process.wait(ENDED_SECONDS) == 0


@pytest.mark.parametrize("asked", [0, 50])
def test_a_client_that_is_killed_takes_its_server_along(home: Path, asked: int) -> None:
    calls = b"".join(
        json.dumps(request(number, "tools/call", {"name": "recent"})).encode() + b"\n"
        for number in range(asked)
    )
    client = subprocess.Popen(
        [COMMAND[0], "-c", CLIENT, json.dumps(COMMAND)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(home),
    )
    assert client.stdin is not None
    assert client.stdout is not None
    with client.stdin, client.stdout:
        client.stdin.write(json.dumps(request("i", "initialize", INITIALIZE)).encode() + b"\n")
        client.stdin.write(calls)
        client.stdin.flush()
        server = int(client.stdout.readline())
        client.kill()
        client.wait()
        wait_until(lambda: not is_running(server), LAST_SECONDS / 2)
    assert stored(home) == (0, 0)


CLIENT = """
import json, subprocess, sys
server = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(sys.stdin.buffer.readline())
server.stdin.flush()
server.stdout.readline()
print(server.pid, flush=True)
while line := sys.stdin.buffer.readline():
    server.stdin.write(line)
    server.stdin.flush()
"""
"""It starts a server, as clients do, greets it, and asks what it is told to."""


def is_running(pid: int) -> bool:
    """A process that nobody has waited for yet has ended all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_server_that_is_ended_amid_calls_leaves_each_whole_or_not_there(home: Path) -> None:
    with Spoken(home) as server:
        server.send(
            *(
                request(number, "tools/call", {"name": "keep", "arguments": {"text": f"{number}"}})
                for number in range(50)
            )
        )
        assert "result" in server.receive()
        server.process.terminate()
        assert server.process.wait(LAST_SECONDS / 2) == -signal.SIGTERM
    files, memories = stored(home)
    assert files == 0
    assert 1 <= memories <= 50


def test_calls_leave_nothing_in_memory(server: Spoken) -> None:
    """Within 3,000 calls the server grew by .4 MB."""

    def call(times: int) -> None:
        for number in range(times):
            server.call("read_file", path="/n")
            server.call("read_file", path=f"/{number}")
            server.call("recall", query=f"plain words {number}", mode="words")
            server.call("list_files")

    server.call("write_file", path="/n", text="plain words\n" * 2_000)
    call(25)
    before = resident_mb(server.process.pid)
    call(200)
    assert resident_mb(server.process.pid) < before + 8


@pytest.mark.parametrize("cancelled", [b'"requestId":"slow"', b'"requestId":[]', b'"x":1'])
def test_a_request_that_is_cancelled_leaves_room_for_others(
    server: Spoken, cancelled: bytes
) -> None:
    server.may_log = b"dropped 'notifications/cancelled': malformed params"
    for _ in range(3 * WAITING):
        server.send(
            request("slow", "tools/call", {"name": "recent", "arguments": {}}),
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{%s}}\n' % cancelled,
        )
    server.send(request("last", "ping"))
    while server.receive()["id"] != "last":
        pass


def test_no_update_is_lost_between_servers(home: Path) -> None:
    """Each counts up what it has read, and does it anew where the other was first."""
    with Spoken(home) as one, Spoken(home) as other:
        one.call("write_file", path="/count", text="0")

        def count(server: Spoken) -> None:
            done = 0
            while done < 50:
                read = server.call("read_file", path="/count")["structuredContent"]
                text, version = str(int(read["text"]) + 1), read["version"]
                put = server.call("write_file", path="/count", text=text, if_version=version)
                done += not put["isError"]

        counting = [Thread(target=count, args=(server,)) for server in (one, other)]
        for each in counting:
            each.start()
        for each in counting:
            each.join()
        assert one.call("read_file", path="/count")["structuredContent"]["text"] == "100"


def test_requests_in_a_file_are_answered(home: Path, tmp_path: Path) -> None:
    """A file is always ready, and can't be waited for."""
    asked = tmp_path / "asked"
    messages = [
        request(1, "initialize", INITIALIZE),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/call", {"name": "folders", "arguments": {}}),
    ]
    asked.write_text("".join(json.dumps(message) + "\n" for message in messages))
    with asked.open() as stdin, (tmp_path / "said").open("w") as stdout:
        subprocess.run(COMMAND, stdin=stdin, stdout=stdout, env=environment(home), check=True)
    said = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    assert [answer["id"] for answer in said] == [1, 2]


def test_a_server_for_one_folder_that_only_reads(home: Path) -> None:
    with Spoken(home, "--in", "my MEMORY", "--read-only") as server:
        tools = {tool["name"] for tool in server.ask("tools/list")["result"]["tools"]}
        assert {"recall", "read_file"} <= tools
        assert not tools & {"keep", "write_file", "edit_file", "move_file", "delete_file"}
        refused = server.ask("tools/call", {"name": "keep", "arguments": {"text": "x"}})
        assert refused["error"]["code"] == -32602
        assert "kept to one folder" in error_text(server.call("recent", folder="My memory"))
    assert stored(home) == (0, 0)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_closed_descriptors_are_an_error_in_one_line(home: Path, closed: str) -> None:
    command = f"exec {' '.join(COMMAND)} {closed}"
    done = subprocess.run(
        ["bash", "-c", command], env=environment(home), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "geniuzfs: standard input and output must be open\n"


def test_a_server_without_standard_error_serves(home: Path) -> None:
    messages = (
        request(1, "initialize", INITIALIZE),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/call", {"name": "folders", "arguments": {}}),
    )
    done = subprocess.run(
        ["bash", "-c", f"exec {' '.join(COMMAND)} 2>&-"],
        input=b"".join(json.dumps(message).encode() + b"\n" for message in messages),
        stdout=subprocess.PIPE,
        env=environment(home),
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


def test_nothing_but_the_protocol_is_on_standard_output(home: Path) -> None:
    script = (
        "import sys; from geniuzfs.mcp import tools; from geniuzfs.cli import main;"
        "call = tools.call; tools.call = lambda *a: (print('stray'), call(*a))[1];"
        "sys.argv[1:] = ['mcp', 'serve']; main()"
    )
    process = subprocess.run(
        [COMMAND[0], "-c", script],
        input=b"".join(
            json.dumps(message).encode() + b"\n"
            for message in (
                request(1, "initialize", INITIALIZE),
                request(2, "tools/call", {"name": "folders", "arguments": {}}),
            )
        ),
        capture_output=True,
        env=environment(home),
        check=True,
    )
    assert [json.loads(line)["id"] for line in process.stdout.splitlines()] == [1, 2]
    assert process.stderr == b"stray\n"
