"""The units of systemd that this program brings, and the user's manager that runs them.

Hides: systemctl, where units lie, and how their templates (systemd/) are filled in. Promises: what
is removed is what was written here, told by its first line; drop-ins of yours stay. Refuses
nothing where there is no manager: `there` says so, and whoever asks mounts without one.
"""

import os
import pwd
import shutil
import string
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from geniuzfs import durable
from geniuzfs.errors import MountError

MOUNT = "geniuzfs.service"
ANOTHER = "geniuzfs@.service"
SOCKET = "geniuzfs-model.socket"
HELPER = "geniuzfs-model.service"
REPLICA = "geniuzfs-replica.service"

MARK = "# Written by `geniuzfs service install`, removed by `geniuzfs service uninstall`.\n"

_SHOWN = "LoadState,UnitFileState,ActiveState,SubState,StatusText,MainPID,NRestarts,Result"
_OURS = ("geniuzfs.service", "geniuzfs@*.service", "geniuzfs-*.service", "geniuzfs-*.socket")
_DROP_IN = "options.conf"
_PLAIN = set(string.ascii_letters + string.digits + "/._-+:=@,")


def directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a user's own units lie."""
    given = environment.get("XDG_CONFIG_HOME", "")
    config = Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~/.config"))
    return config / "systemd" / "user"


def there() -> bool:
    """Whether a manager runs for this user: containers have none, nor has a bare su or cron."""
    return shutil.which("systemctl") is not None and _run("show", "--property=Version").ok


def lingers() -> bool:
    """Whether the user's units run without a session: from boot on, and after the last logout."""
    return Path("/var/lib/systemd/linger", user()).exists()


def filled(name: str, *, url: str = "", environment: Mapping[str, str] = os.environ) -> str:
    """The text of a unit for this very program and its settings."""
    text = (_templates() / name).read_text("utf-8")
    settings = [
        f"Environment={quoted(f'{key}={value}')}"
        for key, value in sorted(environment.items())
        if key.startswith("GENIUZ_") and value
    ]
    text = text.replace("@PROGRAM@", _line(program()))
    text = text.replace("@URL@", _line([url])).replace("@ENVIRONMENT@", "\n".join(settings))
    return MARK + text


def program() -> list[str]:
    """How this very program is called, from wherever. -P: no module out of that directory."""
    return [sys.executable, "-P", "-m", "geniuzfs"]


def quoted(word: str) -> str:
    """One word of a unit file, whatever it holds (systemd.syntax(7))."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")  # else a line of its own begins
    return f'"{escaped}"' if set(word) - _PLAIN else word


def instance(mountpoint: Path) -> str:
    """The unit of one more mount. Raises MountError."""
    if shutil.which("systemd-escape") is None:
        raise MountError("systemd is not installed here: geniuzfs mount and umount do without it")
    done = subprocess.run(
        ["systemd-escape", "--path", "--template", ANOTHER, str(mountpoint)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MountError(f"{mountpoint} can't be the name of a unit: {done.stderr.strip()}")
    return done.stdout.strip()


def drop_in(unit: str, command: Sequence[str]) -> tuple[str, str]:
    """The name and text of what has `unit` run this program with other arguments."""
    line = _line([*program(), *command])
    return f"{unit}.d/{_DROP_IN}", f"{MARK}[Service]\nExecStart=\nExecStart={line}\n"


def write(texts: Mapping[str, str]) -> bool:
    """Have these files there; whether any was another before, or missing."""
    changed = False
    for name, text in texts.items():
        path = directory() / name
        if not path.exists() or path.read_text("utf-8", "replace") != text:
            with durable.translating(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            durable.write(path, text)
            changed = True
    return changed


def written() -> list[Path]:
    """The files that `write` has left."""
    found = [path for pattern in _OURS for path in directory().glob(pattern)]
    found += [path for pattern in _OURS for path in directory().glob(f"{pattern}.d/{_DROP_IN}")]
    return sorted(path for path in set(found) if _is_ours(path))


def installed() -> list[str]:
    """The units that can run: those that were written, the template's by its instances."""
    wanted = directory().glob("default.target.wants/geniuzfs@*.service")
    names = {path.name for path in written() if path.suffix in (".service", ".socket")}
    return sorted(names - {ANOTHER} | {path.name for path in wanted if path.name != ANOTHER})


def remove(paths: Sequence[Path]) -> None:
    """Take files of `written` away, and the directories that they leave empty."""
    for path in paths:
        durable.remove(path)
        if path.name == _DROP_IN and not any(path.parent.iterdir()):
            path.parent.rmdir()


def state(unit: str) -> dict[str, str]:
    """What the manager says of a unit: ActiveState, UnitFileState, StatusText and so on."""
    lines = _run("show", f"--property={_SHOWN}", unit).output.splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines) if key}


def is_active(unit: str) -> bool:
    return state(unit).get("ActiveState") in ("active", "activating", "reloading")


def ask(*command: str) -> None:
    """Have the manager do something and wait for its end. Raises MountError with its reason."""
    done = _run(*command)
    if not done.ok:
        raise MountError(f"systemctl --user {' '.join(command)}: {done.output.strip()}")


def environment() -> dict[str, str]:
    """What systemctl and journalctl find the manager by; su and cron leave it out."""
    usual = f"/run/user/{os.getuid()}"
    found = {"XDG_RUNTIME_DIR": usual} if Path(usual).is_dir() else {}
    return {**found, **os.environ}


def _line(words: Sequence[str]) -> str:
    """A command, or a part of it: there, and nowhere else, a $ begins a variable."""
    return " ".join(quoted(word).replace("$", "$$") for word in words)


class _Done(NamedTuple):
    ok: bool
    output: str


def _run(*command: str) -> _Done:
    """systemctl --user. Output and errors together: of a failure they are the reason."""
    done = subprocess.run(
        ["systemctl", "--user", "--no-pager", *command],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return _Done(done.returncode == 0, done.stdout)


def _is_ours(path: Path) -> bool:
    try:
        return path.read_text("utf-8", "replace").startswith(MARK)
    except OSError:
        return False


def user() -> str:
    """Whose units these are."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container any number may be a user
        return str(os.getuid())


def _templates() -> Path:
    """Beside the package in a wheel, one up in a checkout."""
    package = Path(__file__).parent.parent
    places = (package / "systemd", package.parent / "systemd")
    for place in places:
        if (place / MOUNT).exists():
            return place
    raise FileNotFoundError("the installation lacks its units: install geniuzfs again")
