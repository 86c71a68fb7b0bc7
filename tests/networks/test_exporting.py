"""Networks as C alone: built by gcc without a warning, and right by their own self-test."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

import ansor

pytestmark = [pytest.mark.torch, pytest.mark.compiler, pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")]


class Words(nn.Module):
    """Rows that are looked up, a classifier and indices as results."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.classes = nn.Embedding(20, 8), nn.Linear(8, 3)

    def forward(self, words: torch.Tensor) -> dict[str, object]:
        return {"classes": self.classes(self.words(words).mean(1)), "twice": (words * 2, words)}


def _exported(model: nn.Module, example: torch.Tensor, threads: int, folder: Path) -> Path:
    return ansor.compile(model.eval(), (example,), f"cpu -threads={threads}", library=False).export(folder)


def _built(folder: Path) -> Path:
    sources = ["network.c", "selftest.c", *(str(path.relative_to(folder)) for path in sorted(folder.glob("kernels/*.c")))]
    flags = ["-std=c99", "-O2", "-ffp-contract=fast", "-march=native", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, *sources, "-o", "test", "-lm"], cwd=folder, check=True, capture_output=True)
    return folder / "test"


@pytest.mark.parametrize("threads", [1, 2])
def test_the_self_test_is_right_and_finds_what_is_wrong(threads: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
    folder = _exported(model, torch.randn(1, 3, 16, 16), threads, tmp_path / "net")
    test = _built(folder)
    assert subprocess.run([test, folder], capture_output=True, text=True, check=True).stdout == "network: right\n"
    recorded = bytearray((folder / "selftest.bin").read_bytes())
    recorded[-1] ^= 0x40
    (folder / "selftest.bin").write_bytes(recorded)
    found = subprocess.run([test, folder], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (1, "network: wrong, 1 outputs\n")
    (folder / "constants.bin").write_bytes(b"")
    assert subprocess.run([test, folder], capture_output=True).returncode == 2


def test_look_ups_and_whole_numbers(tmp_path: Path) -> None:
    folder = _exported(Words(), torch.arange(6).reshape(1, 6), 1, tmp_path / "net")
    assert subprocess.run([_built(folder), folder], capture_output=True, text=True, check=True).stdout == "network: right\n"
    recorded = bytearray((folder / "selftest.bin").read_bytes())
    recorded[0] = 20
    (folder / "selftest.bin").write_bytes(recorded)
    assert subprocess.run([folder / "test", folder], capture_output=True, text=True).stdout == "network: an index is out of range\n"


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_builds_and_tests_it(tmp_path: Path) -> None:
    folder = _exported(nn.Linear(8, 4), torch.randn(2, 8), 1, tmp_path / "net")
    for command in (["cmake", "-S", str(folder), "-B", "build", "-DCMAKE_C_COMPILER=gcc"], ["cmake", "--build", "build"], ["ctest", "--test-dir", "build"]):
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert said.returncode == 0 and "warning" not in said.stdout + said.stderr, said.stdout + said.stderr
