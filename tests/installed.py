"""The wheel as users have it: installed into a fresh virtual environment, away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NUMPY = ("numpy", "numpy.libs")


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel. `folder`: where its programs run, and where its cache is."""

    python: Path
    folder: Path

    def run(self, program: str, path: str = os.defpath, **variables: str) -> str:
        """The output of a program, which does not get this process's environment. Fails the test if the program fails."""
        (self.folder / "program.py").write_text(program)
        environment = {"PATH": path, "HOME": str(self.folder), "ANSOR_CACHE": str(self.folder / "cache"), **variables}
        command = [str(self.python), "-I", "-W", "error", "program.py"]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        return done.stdout


def install(wheel: Path, folder: Path, packages: Iterable[str]) -> Installed:
    """A new environment with a wheel, and with packages from existing folders: nothing is downloaded."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    (place,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (place / "packages.pth").write_text("\n".join(packages) + "\n")
    return Installed(python, folder)


def all_packages() -> list[str]:
    """The folders of what is installed here. An editable install is not found through them: its `.pth` files are not read."""
    return [path for path in sys.path if path.endswith("-packages")]


def numpy_alone(folder: Path) -> list[str]:
    """A folder with NumPy and nothing else."""
    place = Path(np.__file__).parents[1]
    folder.mkdir()
    for name in NUMPY:
        if (place / name).exists():
            (folder / name).symlink_to(place / name)
    return [str(folder)]
