"""`.geniuzignore` against git itself."""

import random
import subprocess
from pathlib import Path

import pytest

from geniuzfs.learn.ignore import Ignored

FILES = ["a", "foo", "bar.md", "b.log", "x y", "[z]", "#h", "!n", ".hidden"]
DIRECTORIES = ["", "d", "d/e", "foo2", "foo2/d"]
SEGMENTS = ["a", "d", "e", "foo", "foo2", "*.md", "*", "**", "f*", "?", "[ab]", "[!a]", "b.log"]
SEGMENTS += ["x y", "x\\ y", "\\#h", "\\!n", "[z]", "\\[z\\]", "fo[o", "d**", "*.log "]
FIXED = [
    {"": "# comment\n\n*.log\n!b.log\n"},
    {"": "d/\n!d/a\n"},
    {"": "d/*\n!d/a\n"},
    {"": "/a\n", "d": "!a\n"},
    {"": "a\n", "d": "!a\n", "d/e": "a\n"},
    {"": "**/e\nfoo2/**\n"},
    {"": "d/**/a\n!**/d/\n"},
    {"": "*\n!*/\n!*.md\n"},
    {"": "\ufeffa\r\nfoo  \n"},
    {"": "d/**/\n", "foo2": "/d\n"},
]


def some_rules(chance: random.Random) -> dict[str, str]:
    def line() -> str:
        path = "/".join(chance.choice(SEGMENTS) for _ in range(chance.choice([1, 1, 1, 2, 3])))
        return chance.choice(["", "", "!", "/", "!/"]) + path + chance.choice(["", "", "/"])

    where = chance.sample(DIRECTORIES, chance.choice([1, 1, 2, 3]))
    return {path: "".join(f"{line()}\n" for _ in range(chance.randint(1, 5))) for path in where}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", top], check=True)
    for directory in DIRECTORIES:
        (top / directory).mkdir(exist_ok=True)
        for name in FILES:
            (top / directory / name).touch()
    return top


def git_ignores(top: Path, rules: dict[str, str], paths: list[str]) -> set[str]:
    for directory in DIRECTORIES:
        (top / directory / ".gitignore").write_bytes(rules.get(directory, "").encode())
    found = subprocess.run(
        ["git", "-C", top, "check-ignore", "--stdin", "-z", "--no-index"],
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,  # it exits with 1 where it ignores nothing
    )
    assert not found.stderr
    return set(found.stdout.decode().split("\0")) - {""}


@pytest.mark.parametrize("seed", range(len(FIXED) + 60))
def test_the_rules_mean_what_they_mean_to_git(repository: Path, seed: int) -> None:
    rules = FIXED[seed] if seed < len(FIXED) else some_rules(random.Random(seed))
    paths = [f"{directory}/{name}".lstrip("/") for directory in DIRECTORIES for name in FILES]
    ignored = Ignored(rules)
    ours = {path for path in paths if ignored.covers(path)}
    assert ours == git_ignores(repository, rules, paths), rules


def test_no_rules_cover_nothing() -> None:
    assert not Ignored({}).covers("a/b")
    assert not Ignored({"": "\n# only a comment\n!\n/\n"}).covers("a/b")
