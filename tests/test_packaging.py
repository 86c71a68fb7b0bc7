"""The wheel holds what the folders hold. A package missing from the list works in an editable install and is absent from the wheel, without a word."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]
PLACES: dict[str, str] = SETUPTOOLS["package-dir"]
NEEDED_TO_BUILD = ("pyproject.toml", "README.md", "LICENSE")


def _packages() -> set[str]:
    """Every folder with Python files, by the name it is installed under."""
    found = set()
    for package, folder in PLACES.items():
        for path in (ROOT / folder).rglob("*.py"):
            found.add(".".join([package, *path.parent.relative_to(ROOT / folder).parts]))
    return found


def _folder(package: str) -> Path:
    place = max((name for name in PLACES if package == name or package.startswith(f"{name}.")), key=len)
    return ROOT / PLACES[place] / Path(*package.removeprefix(place).strip(".").split("."))


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy: a build folder with old files in it would hide what is missing."""
    copy, output = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in NEEDED_TO_BUILD:
        shutil.copy(ROOT / name, copy)
    for folder in PLACES.values():
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(output), str(copy)]
    built = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert built.returncode == 0, built.stderr
    (path,) = output.glob("ansor-*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> set[str]:
    """The names in it."""
    with zipfile.ZipFile(wheel_file) as archive:
        return set(archive.namelist())


def test_packages_are_the_folders() -> None:
    listed = SETUPTOOLS["packages"]
    assert set(listed) == _packages() and len(listed) == len(set(listed))


def test_each_package_has_an_init_file() -> None:
    assert all((_folder(package) / "__init__.py").is_file() for package in SETUPTOOLS["packages"])


def test_every_python_file_is_in_the_wheel(wheel: set[str]) -> None:
    files = {f"{package.replace('.', '/')}/{path.name}" for package in _packages() for path in _folder(package).glob("*.py")}
    assert {name for name in wheel if name.endswith(".py")} == files


def test_data_files_are_in_the_wheel(wheel: set[str]) -> None:
    """Whatever lies beside the modules, C and tables of numbers: package-data in pyproject.toml names it.

    Python's folders of bytecode are left out whole: a process running beside may be writing a file of any name there.
    """
    found = {
        f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder)}"
        for package, folder in PLACES.items() for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }  # fmt: skip
    assert len(found) > 60 and wheel >= found


def test_only_one_name_lands_in_site_packages(wheel: set[str]) -> None:
    assert {name.partition("/")[0].partition("-")[0] for name in wheel} == {"ansor"}


def test_the_version_is_said_once_and_the_same() -> None:
    import ansor

    assert ansor.__version__ == PROJECT["project"]["version"]
