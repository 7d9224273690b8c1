"""What is built is what was written: the schema travels along and no dependency is undeclared."""

import ast
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PRINT_SCHEMA = """
import json, geniuzfs, geniuzfs.store.schema
print(json.dumps([geniuzfs.__file__, geniuzfs.store.schema.schema_files()]))
"""


def run_python(*arguments: str, cwd: Path, path: Path | None = None) -> str:
    """The output of this Python. `path` goes before its site-packages."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    if path:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def schema_seen_from(place: Path, cwd: Path) -> list[tuple[int, str, str]]:
    """The schema as the copy of the package in `place` finds it."""
    module_file, files = json.loads(run_python("-Pc", PRINT_SCHEMA, cwd=cwd, path=place))
    assert Path(module_file).is_relative_to(place)
    return [tuple(file) for file in files]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built by way of the sdist, so that a file missing there is missing here too."""
    out = tmp_path_factory.mktemp("dist")
    run_python("-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT), cwd=out)
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_carries_every_schema_file_and_the_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    written = {f"geniuzfs/schema/{file.name}" for file in (ROOT / "schema").glob("*.sql")}
    assert written
    assert written <= names
    assert {Path(name).name for name in names} >= {"LICENSE", "NOTICE"}
    assert not any(name.startswith("tests/") for name in names)


def test_an_installed_copy_and_the_checkout_find_the_same_schema(
    wheel: Path, tmp_path: Path
) -> None:
    target = tmp_path / "site"
    run_python(
        *("-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
        *("--target", str(target), str(wheel)),
        cwd=tmp_path,
    )
    installed = schema_seen_from(target, tmp_path)
    assert installed == schema_seen_from(ROOT, tmp_path)
    assert [file[2] for file in installed] == [
        file.read_text("utf-8") for file in sorted((ROOT / "schema").glob("[0-9]*.sql"))
    ]


def outside_imports() -> Iterator[tuple[str, str]]:
    """(top-level module, file that imports it) for all that is neither ours nor Python's."""
    for file in sorted((ROOT / "geniuzfs").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                modules = [node.module]
            else:
                continue
            for module in modules:
                top = module.partition(".")[0]
                if top != "geniuzfs" and top not in sys.stdlib_module_names:
                    yield top, str(file.relative_to(ROOT))


def normalized(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_import_from_outside_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [
        requirement
        for extra, wanted in project["optional-dependencies"].items()
        if extra != "dev"
        for requirement in wanted
    ]
    declared = {
        normalized(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
        for requirement in [*project["dependencies"], *extras]
    }
    distributions = packages_distributions()
    undeclared = [
        (module, file)
        for module, file in outside_imports()
        if declared.isdisjoint(map(normalized, distributions.get(module, [])))
    ]
    assert undeclared == []
