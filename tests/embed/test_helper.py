"""The helper process and its client, for real."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from geniuzfs.config import Config
from geniuzfs.embed import cards, client, e5, models, onnx, place, stream, wire
from geniuzfs.embed.client import Helper
from geniuzfs.embed.ollama import Ollama
from geniuzfs.errors import ModelUnavailable, TooLate, UnsafePlace, UsageError
from geniuzfs.model import ModelId
from tests.daemon import wait_until
from tests.embed.conftest import Make, configured, end
from tests.embed.fake import tiny_model

Found = TypeVar("Found")

WORDS = ["bread", "oven", "flour", "tax", "law", "court"]
RESIDENT_MAX = 250 << 20


@pytest.fixture
def tiny(tmp_path: Path) -> ModelId:
    """A tiny model, chosen."""
    (tmp_path / "home").mkdir()
    return models.use(tmp_path / "home", tiny_model(tmp_path / "tiny", words=WORDS))


def pid(helper: Helper) -> int:
    state = helper.state(10)
    assert state is not None
    return state.pid


def resident(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


def running() -> int:
    """Helpers that this process has started and that live."""
    count = 0
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # no process, or gone meanwhile
            continue
        count += b"geniuzfs.cli.serve" in words and parent == str(os.getpid())
    return count


def stop(process: int) -> None:
    """SIGSTOP, and wait until no thread runs."""
    os.kill(process, signal.SIGSTOP)
    tasks = list(Path(f"/proc/{process}/task").iterdir())
    wait_until(
        lambda: all((task / "stat").read_text().rpartition(")")[2][1] == "T" for task in tasks)
    )


def beside(call: Callable[[], Found]) -> "Future[Found]":
    """The call, in a thread of its own."""
    pool = ThreadPoolExecutor(1)
    found = pool.submit(call)
    pool.shutdown(wait=False)
    return found


def test_the_client_starts_the_helper_and_gets_what_the_model_gives(
    make: Make, tiny: ModelId, tmp_path: Path
) -> None:
    helper, here = make(), onnx.load(tmp_path / "tiny")
    assert helper.state(5) is None
    assert helper.model() == tiny
    assert np.array_equal(helper.query("bread", tiny, 20), here.query("bread"))
    rows = helper.passages(["bread", "law", "tax tax"], tiny)
    assert rows.dtype == np.float32
    assert np.array_equal(rows[1], here.passage("law"))
    assert helper.passages([], tiny).shape[0] == 0
    state = helper.state(5)
    assert state is not None
    assert state.models == (tiny,)


def test_any_number_of_texts_comes_back_in_order(make: Make, tiny: ModelId) -> None:
    helper = make()
    texts = [f"{word} {number}" for number in range(70) for word in WORDS]
    rows = helper.passages(texts, tiny)
    assert rows.shape == (len(texts), 64)
    for index in (0, 31, 32, 33, 200, len(texts) - 1):
        assert np.array_equal(rows[index], helper.passages([texts[index]], tiny)[0])


def test_threads_share_a_client(make: Make, tiny: ModelId) -> None:
    helper = make()
    expected = {word: helper.query(word, tiny, 20) for word in WORDS}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda word: helper.query(word, tiny, 20), WORDS * 30))
    for word, row in zip(WORDS * 30, found, strict=True):
        assert np.array_equal(row, expected[word])


def test_many_who_start_at_once_have_one_helper(make: Make, tiny: ModelId) -> None:
    before = running()
    clients = [make() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: one.query("bread", tiny, 30), clients))
    assert len({pid(one) for one in clients}) == 1
    assert running() == before + 1


def test_two_processes_that_start_at_once_have_one_helper(
    make: Make, tiny: ModelId, tmp_path: Path
) -> None:
    program = (
        "from geniuzfs.config import Config; from geniuzfs.embed.client import Helper\n"
        "helper = Helper(Config.from_environment())\n"
        "helper.query('bread', helper.model(), 30); print(helper.state(5).pid)"
    )
    environment = {
        **os.environ,
        "GENIUZ_HOME": str(tmp_path / "home"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
    }
    helper = make()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert {process.communicate(timeout=60)[0].strip() for process in started} == {str(pid(helper))}


def test_a_helper_killed_between_two_calls_comes_back(make: Make, tiny: ModelId) -> None:
    helper = make()
    before = helper.query("bread", tiny, 20)
    old = pid(helper)
    os.kill(old, signal.SIGKILL)
    assert np.array_equal(helper.query("bread", tiny, 20), before)
    assert pid(helper) != old


def test_a_helper_killed_in_mid_batch_comes_back(make: Make, tiny: ModelId) -> None:
    helper = make()
    texts = [f"{word} {number}" for number in range(30) for word in WORDS]
    expected = helper.passages(texts, tiny)
    stopped = pid(helper)
    stop(stopped)
    embedding = beside(lambda: helper.passages(texts, tiny))
    os.kill(stopped, signal.SIGKILL)
    assert np.array_equal(embedding.result(60), expected)
    assert pid(helper) != stopped


def test_a_question_waits_for_no_passage(shipped: Helper) -> None:
    model = shipped.model()
    texts = ["A long text about bread, and about ovens. " * 60 + str(n) for n in range(12)]
    embedding = beside(lambda: shipped.passages(texts, model))
    answered = 0
    while not embedding.done():
        shipped.query("How is bread baked?", model, 30)
        answered += 1
    assert embedding.result().shape == (12, 384)
    assert answered > 3


def test_a_late_answer_is_too_late_and_does_no_harm(make: Make, tiny: ModelId) -> None:
    helper = make()
    before = helper.query("bread", tiny, 20)
    process = pid(helper)
    stop(process)
    try:
        with pytest.raises(TooLate):
            helper.query("law", tiny, 0.05)
    finally:
        os.kill(process, signal.SIGCONT)
    assert np.array_equal(helper.query("bread", tiny, 20), before)
    assert pid(helper) == process


def test_no_time_at_all_is_too_late(make: Make, tiny: ModelId) -> None:
    with pytest.raises(TooLate):
        make().query("bread", tiny, 0.0)


def test_an_idle_helper_ends_and_the_next_question_starts_another(
    make: Make, tiny: ModelId
) -> None:
    helper = make(GENIUZ_EMBED_IDLE="0.2")
    before = helper.query("bread", tiny, 20)
    wait_until(lambda: helper.state(5) is None)
    assert np.array_equal(helper.query("bread", tiny, 20), before)


def test_the_earlier_model_goes_on_answering(make: Make, tiny: ModelId, tmp_path: Path) -> None:
    helper = make()
    before = helper.query("bread", tiny, 20)
    other = tiny_model(tmp_path / "other", name="other", words=WORDS, dimension=48)
    new = models.use(tmp_path / "home", other)
    assert helper.model() == new != tiny
    assert helper.query("bread", new, 20).shape == (48,)
    assert np.array_equal(helper.query("bread", tiny, 20), before)
    state = helper.state(5)
    assert state is not None
    assert set(state.models) == {tiny, new}


def test_a_model_that_changed_in_its_directory_is_not_passed_off(
    make: Make, tiny: ModelId, tmp_path: Path
) -> None:
    tiny_model(tmp_path / "tiny", name="other", words=WORDS)
    with pytest.raises(ModelUnavailable, match="is now other@"):
        make().query("bread", tiny, 20)


def test_damaged_weights_are_said_and_not_tried_again_at_once(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "first" / e5.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('this must never be imported')")
    (package / e5.FILE).write_bytes(b"E5S1 damaged")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    helper = make()
    with pytest.raises(ModelUnavailable, match="damaged") as first:
        helper.query("bread", cards.DEFAULT.id, 30)
    assert "\n" not in str(first.value)
    end(helper)
    with pytest.raises(ModelUnavailable, match="damaged"):
        helper.passages(["bread"], cards.DEFAULT.id)
    assert helper.state(5) is None  # it was not even started


def test_a_missing_file_of_weights_is_said(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "first" / e5.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    with pytest.raises(ModelUnavailable, match="can't be read"):
        make().query("bread", cards.DEFAULT.id, 30)


def test_a_model_that_comes_back_is_used_after_some_seconds(
    make: Make, tiny: ModelId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = make()
    away = tmp_path / "tiny" / "model.onnx"
    away.rename(tmp_path / "away")
    with pytest.raises(ModelUnavailable, match="exactly one model"):
        helper.query("bread", tiny, 20)
    (tmp_path / "away").rename(away)
    with pytest.raises(ModelUnavailable, match="exactly one model"):
        helper.query("bread", tiny, 20)
    later = time.monotonic() + client.RETRY_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert helper.query("bread", tiny, 20).shape == (64,)


def test_a_text_that_the_model_fails_on_does_not_take_it_away(make: Make, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    made = tiny_model(tmp_path / "broken", words=WORDS, broken=True)
    model = models.use(tmp_path / "home", made)
    helper = make()
    with pytest.raises(ModelUnavailable, match="tiny failed"):
        helper.passages(["bread"], model)
    assert helper.query("ink", model, 20).shape == (64,)


def test_a_helper_that_can_not_start_is_said(
    make: Make, tiny: ModelId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    helper = make()
    with pytest.raises(ModelUnavailable, match="ended or can't be reached"):
        helper.query("bread", tiny, 20)
    with pytest.raises(ModelUnavailable):
        helper.passages(["bread"], tiny)


def test_the_socket_is_the_users_own(make: Make, tiny: ModelId, tmp_path: Path) -> None:
    make().query("bread", tiny, 20)
    directory = tmp_path / "run" / "geniuzfs"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / place.SOCKET).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home" / client.LOG).stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path, kind: str) -> None:
    runtime = tmp_path / "runtime"
    if kind == "open":
        runtime.mkdir()
        runtime.chmod(0o755)
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        runtime.symlink_to(tmp_path / "elsewhere")
    else:
        runtime.touch(0o600)
    with pytest.raises(UnsafePlace):
        place.listen(runtime)


def test_an_unsafe_directory_is_a_model_that_is_away(
    make: Make, tiny: ModelId, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "geniuzfs").mkdir()
    (tmp_path / "run" / "geniuzfs").chmod(0o777)
    helper = make()
    with pytest.raises(ModelUnavailable, match="no one else may enter"):
        helper.query("bread", tiny, 20)
    (tmp_path / "run" / "geniuzfs").chmod(0o700)


def test_only_one_listens(tmp_path: Path) -> None:
    runtime = tmp_path / ("long" * 40) / "runtime"  # longer than an address may be
    first = place.listen(runtime)
    assert first is not None
    with first:
        assert place.listen(runtime) is None
        with place.connect(runtime, 1) or pytest.fail("nobody listens") as there:
            assert place.is_ours(there)
    again = place.listen(runtime)  # what a dead helper left is no obstacle
    assert again is not None
    again.close()


def test_bytes_that_are_no_frame_end_the_connection_alone(
    make: Make, tiny: ModelId, tmp_path: Path
) -> None:
    helper = make()
    helper.query("bread", tiny, 20)
    process = pid(helper)
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100):
        connection = place.connect(tmp_path / "run" / "geniuzfs", 5)
        assert connection is not None
        with connection:
            connection.sendall(sent)
            with suppress(ConnectionResetError):  # it closes with some of this unread
                assert connection.recv(10) == b""
    odd = place.connect(tmp_path / "run" / "geniuzfs", 5)
    assert odd is not None
    with odd:
        stream.send(odd, wire.Failure("answers are not asked for", lasting=True))
        assert isinstance(stream.receive(odd), wire.Failure)
    assert pid(helper) == process


def test_a_frame_that_is_cut_off_is_no_message() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(wire.encode(wire.Failure("reason", lasting=True))[:-1])
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            stream.receive(theirs)


def test_the_socket_may_come_from_systemd(make: Make, tiny: ModelId, tmp_path: Path) -> None:
    helper = make()
    listening = place.listen(tmp_path / "run" / "geniuzfs")
    assert listening is not None
    # What systemd does: the socket is descriptor 3, and LISTEN_PID is the process itself.
    program = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3)\n"
        "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'geniuzfs.cli.serve'])"
    )
    with listening:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(listening.fileno())],
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run")},
            pass_fds=(listening.fileno(),),
        )
    assert helper.query("bread", tiny, 20).shape == (64,)
    assert pid(helper) == process.pid
    process.kill()
    process.wait()


def test_who_only_wants_to_know_starts_no_helper(make: Make, tiny: ModelId, tmp_path: Path) -> None:
    """systemd would, upon a connection to its socket, which nobody has accepted here yet."""
    helper, runtime = make(), tmp_path / "run" / "geniuzfs"
    assert not place.is_running(runtime)
    listening = place.listen(runtime)
    assert listening is not None
    with listening:
        assert helper.state(5) is None
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
    running = place.running(runtime)
    assert place.is_running(runtime)
    os.close(running)
    assert not place.is_running(runtime)


def test_a_second_helper_says_that_one_runs(make: Make, tiny: ModelId, tmp_path: Path) -> None:
    make().query("bread", tiny, 20)
    command = [sys.executable, "-m", "geniuzfs.cli.serve", "--runtime", f"{tmp_path}/run/geniuzfs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "a helper runs already\n"


def test_the_shipped_model_stays_small(shipped: Helper) -> None:
    model = shipped.model()
    long = "The quick brown fox jumps. 机器学习正在改变. " * 60
    # As questions, since passages may take long on a busy machine. They need the same memory.
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: shipped.query(f"{n} {long}", model, 30), range(8)))
    assert resident(pid(shipped)) < RESIDENT_MAX


def test_passages_have_the_lowest_priority_and_questions_the_normal_one(shipped: Helper) -> None:
    shipped.passages(["bread"] * 4, shipped.model())
    process = pid(shipped)
    assert os.getpriority(os.PRIO_PROCESS, process) == 19
    priorities = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(ProcessLookupError):  # a conversation that has just ended
            priorities.append(os.getpriority(os.PRIO_PROCESS, int(task.name)))
    assert priorities.count(19) >= 2  # the first thread, and at least one for passages
    assert set(priorities) == {0, 19}


def test_passages_take_the_session_back_and_a_question_forward(make: Make, tiny: ModelId) -> None:
    helper = make()
    helper.passages(["bread"], tiny)
    group = Path(f"/proc/{pid(helper)}/autogroup")
    if not group.exists():
        pytest.skip("the kernel does not group by session (CONFIG_SCHED_AUTOGROUP)")
    assert group.read_text().endswith("nice 19\n")
    helper.query("bread", tiny, 20)
    assert group.read_text().endswith("nice 0\n")

    def back() -> bool:
        helper.passages(["bread"], tiny)
        return group.read_text().endswith("nice 19\n")

    wait_until(back)


def test_the_configuration_chooses(tmp_path: Path) -> None:
    assert isinstance(client.embedder(configured(tmp_path)), Helper)
    url = "http://127.0.0.1:1#some-model"
    assert isinstance(client.embedder(configured(tmp_path, GENIUZ_EMBED_URL=url)), Ollama)
    with pytest.raises(UsageError):
        client.embedder(configured(tmp_path, GENIUZ_EMBED_URL="http://example.com#model"))


def test_settings_of_embedding_are_read() -> None:
    settings = Config.from_environment(
        {
            "HOME": "/home/you",
            "XDG_RUNTIME_DIR": "/run/user/1000",
            "GENIUZ_EMBED_IDLE": "2.5",
            "GENIUZ_THREADS": "7",
            "GENIUZ_EMBED_URL": "http://localhost#m",
        }
    ).embedding
    assert settings.runtime == Path("/run/user/1000/geniuzfs")
    assert (settings.idle_seconds, settings.threads) == (2.5, 7)
    assert settings.url == "http://localhost#m"


def test_defaults_of_embedding() -> None:
    settings = Config.from_environment({"HOME": "/home/you", "XDG_RUNTIME_DIR": "odd"}).embedding
    assert settings.runtime == Path(f"/tmp/geniuzfs-{os.getuid()}")
    assert settings.idle_seconds == 300
    assert 1 <= settings.threads <= 4
    assert settings.url is None


@pytest.mark.parametrize("name", ["GENIUZ_EMBED_IDLE", "GENIUZ_THREADS"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "nan", "inf"])
def test_a_setting_that_is_no_number_is_an_error(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        Config.from_environment({"HOME": "/", name: value})
