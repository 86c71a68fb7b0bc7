"""Programs for boards, as files: they build without Python, and prove themselves on the board's simulator."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import ansor
from ansor import te
from ansor.codegen.toolchain import find_compiler
from ansor.measure.devices.simulator import find_program
from ansor.run.program import Program
from ansor.support import settings
from ansor.targets.boards.catalogue import find_board
from ansor.te import nn
from ansor.te.tensor import Tensor


def convolution() -> list[Tensor]:
    data, weight = te.placeholder((1, 4, 8, 8), name="data"), te.placeholder((8, 4, 3, 3), name="weight", constant=True)
    return [data, weight, nn.relu(nn.conv2d(data, weight, padding=1))]


def root() -> list[Tensor]:
    x = te.placeholder((40,), name="x")
    return [x, te.compute((40,), lambda i: te.sqrt(x[i]) + te.log(x[i]), name="y")]


def saved(declare: object, board: str, folder: Path) -> Path:
    program = ansor.auto_schedule(declare, target=f"micro -board={board}", trials=0, progress=False)  # type: ignore[arg-type]
    assert isinstance(program, Program)
    place = program.save(folder / "saved")
    return Path(shutil.move(place, folder / "elsewhere"))


def self_test(folder: Path, board: str) -> subprocess.CompletedProcess[str]:
    zig, simulator = find_compiler("zig").command[0], find_program(find_board(board).run.command[0])
    environment = {"PATH": f"/usr/bin:/bin:{Path(simulator).parent}", "CC": f"{zig} cc", "AR": f"{zig} ar", "HOME": str(folder),
                   "ZIG_GLOBAL_CACHE_DIR": str(settings.cache_part("zig")), "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}  # fmt: skip
    return subprocess.run(["sh", str(folder / "build.sh"), "test"], env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("board", ["netduinoplus2", "spike-rv32"])
def test_what_is_saved_builds_by_itself_and_proves_itself(board: str, tmp_path: Path) -> None:
    folder = saved(convolution, board, tmp_path)
    assert not any("ansor/" in path.read_text() for path in folder.rglob("*") if path.is_file())
    done = self_test(folder, board)
    assert (done.returncode, done.stdout) == (0, "convolution: right\n"), done.stdout + done.stderr
    text = (folder / "convolution.c").read_text()
    (folder / "convolution.c").write_text(f"{text[: text.rindex('}')]}  ((float *)args[2])[5] += 0.5f;\n}}\n")
    broken = self_test(folder, board)
    assert broken.returncode == 1 and "convolution: wrong" in broken.stdout


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
def test_roots_are_tested_with_positive_inputs(tmp_path: Path) -> None:
    done = self_test(saved(root, "mps2-an386", tmp_path), "mps2-an386")
    assert (done.returncode, done.stdout) == (0, "root: right\n"), done.stdout + done.stderr


@pytest.mark.compiler
def test_boards_without_a_simulator_say_where_the_image_goes(tmp_path: Path) -> None:
    build = (saved(root, "nrf52840dk", tmp_path) / "build.sh").read_text()
    assert "nrf52840dk has no simulator: load selftest/image.elf on the board" in build
