"""Networks as C, built for this machine and for boards: every byte against the reference in NumPy."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from torch import nn

from ansor.codegen.toolchain import find_compiler
from ansor.errors import MeasureError, ModelError, TargetError
from ansor.integer.c_text import header_text
from ansor.integer.compiling import compiled
from ansor.integer.from_torch import from_torch
from ansor.integer.host import HostNetwork
from ansor.integer.network import IntegerNetwork
from ansor.integer.network_code import Limits, NetworkCode
from ansor.integer.reference import run
from ansor.integer.saved import save
from ansor.run.keywords import RunOptions
from ansor.support.settings import cache_part, environment_with
from ansor.targets.base import parse_target
from tests.integer.models import WIDE, samples, small, wide
from tests.integer.networks import inputs_of

pytestmark = [pytest.mark.compiler, pytest.mark.torch]
PLAIN = "cpu -mcpu=x86-64 -vector-bytes=4 -mattr=-sse2"
BOARDS = {
    "cortex-m4": ("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp"),
    "rv32imac": ("-target", "riscv32-freestanding", "-mcpu=generic_rv32+m+a+c"),
}
BARE = ("-O2", "-g0", "-std=gnu99", "-ffreestanding", "-nostdinc", "-fno-unwind-tables", "-Werror=implicit-function-declaration")


def code_of(network: IntegerNetwork, target: str = PLAIN) -> NetworkCode:
    """Chosen without measuring."""
    asked, machine = RunOptions.of({"trials": 0}), parse_target(target)
    with asked.audience.reporter(machine) as reporter:
        return compiled(network, machine, asked, reporter)


@pytest.fixture(scope="module")
def network() -> IntegerNetwork:
    return from_torch(small(), samples(), "small")


@pytest.fixture(scope="module")
def code(network: IntegerNetwork) -> NetworkCode:
    return code_of(network)


def _equal_bytes(code: NetworkCode) -> None:
    built = HostNetwork(code)
    assert built.selftest() == 0
    for seed in range(20):
        inputs = inputs_of(code.network, seed)
        expected, found = run(code.network, inputs), built.run(inputs)
        assert all(np.array_equal(found[name], expected[name]) for name in code.network.outputs)


def test_the_c_code_gives_the_bytes_of_the_reference(code: NetworkCode) -> None:
    kinds = {call.operator.kind for call in code.calls}
    assert kinds == {"convolution", "depthwise", "maxpool", "table", "dense"}
    assert [len(call.operator.inputs) for call in code.calls if call.operator.kind == "convolution"] == [1, 2]  # the last one adds
    assert "restrict" in code.kernels[0].code.text and code.arena_bytes == code.plan.size
    _equal_bytes(code)


@pytest.mark.parametrize("threads", [1, 2])
def test_vectors_and_threads_of_this_machine_give_them_too(network: IntegerNetwork, threads: int) -> None:
    tried = network if threads == 1 else from_torch(wide(), samples(2, WIDE), "small")
    code = code_of(tried, f"cpu -threads={threads}")
    assert (max(one.code.threads for one in code.kernels), "small_run_parallel" in header_text(code)) == (threads, threads > 1)
    _equal_bytes(code)


def test_pools_reshapes_and_several_outputs() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x):  # type: ignore[no-untyped-def]
            x = self.conv(x)
            return nn.functional.avg_pool2d(x, 3, 2, 1), x.reshape(1, 4, 70), nn.functional.adaptive_avg_pool2d(x, 1)

    found = from_torch(Two(), samples(), "two outputs")
    assert {one.kind for one in found.operators} == {"convolution", "averagepool", "transpose", "reshape"}
    _equal_bytes(code_of(found))


def test_the_folder_builds_and_tests_itself(code: NetworkCode, tmp_path: Path) -> None:
    save(code, tmp_path)
    compiler = " ".join(find_compiler("").command)
    environment = {"CC": compiler, "AR": compiler.removesuffix(" cc") + " ar", "CFLAGS": "-O1", "MCPU": ""}
    environment = environment_with({**environment, "ZIG_GLOBAL_CACHE_DIR": str(cache_part("zig"))})
    ran = subprocess.run(["sh", "build.sh", "test"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "small: right"


def test_the_self_test_sees_wrong_weights(code: NetworkCode) -> None:
    first = next(iter(code.constants))
    wrong = replace(code, constants={**code.constants, first: np.zeros_like(code.constants[first])})
    assert HostNetwork(wrong).selftest() > 0


@pytest.mark.parametrize("board", BOARDS)
def test_it_builds_for_boards_without_a_library(code: NetworkCode, tmp_path: Path, board: str) -> None:
    save(code, tmp_path)
    compiler = find_compiler("zig")
    defined: set[str] = set()
    wanted: set[str] = set()
    (tmp_path / "main.c").unlink()
    files = [*map(str, tmp_path.glob("*.c")), *map(str, tmp_path.glob("kernels/*.c"))]
    flags = (*BOARDS[board], *BARE, f"-I{tmp_path}", "-c")
    environment = environment_with({"ZIG_GLOBAL_CACHE_DIR": str(cache_part("zig"))})
    for file in files:
        ran = subprocess.run([*compiler.command, *flags, file], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
    assert len(list(tmp_path.glob("*.o"))) == len(files)
    for place in tmp_path.glob("*.o"):
        with place.open("rb") as stream:
            for symbol in ELFFile(stream).get_section_by_name(".symtab").iter_symbols():
                (wanted if symbol["st_shndx"] == "SHN_UNDEF" else defined).add(symbol.name)
    outside = {name for name in wanted - defined if name and not name.startswith("__aeabi_mem")}
    assert outside <= {"memcpy", "memset", "memmove"} and "small_run" in defined


def test_what_does_not_fit_is_refused_with_the_numbers(code: NetworkCode) -> None:
    code.check_fits(Limits(1 << 20, 1 << 20))
    code.check_fits(Limits())
    with pytest.raises(ModelError, match=rf"needs {code.arena_bytes + code.stack_bytes} bytes of RAM .* but the board has 100; the peak is at "):
        code.check_fits(Limits(ram_bytes=100))
    with pytest.raises(ModelError, match=rf"needs {code.constant_bytes} bytes of flash for its constants, but the board has 64"):
        code.check_fits(Limits(flash_bytes=64))


def test_folders_that_cannot_be_written_to(code: NetworkCode, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError, match="cannot be written to"):
        save(code, tmp_path / "file")


def test_programs_of_other_machines_are_not_loaded(network: IntegerNetwork) -> None:
    with pytest.raises(TargetError, match="not in this process"):
        HostNetwork(code_of(network, "arm -mcpu=cortex-a72"))
