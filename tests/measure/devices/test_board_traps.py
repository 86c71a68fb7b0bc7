"""Programs that end badly, the same ones on each family of cores: what is said of each, with its pc, and the right one that runs after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from ansor.codegen.image.board import Board
from ansor.codegen.image.toolchain import ImageToolchain
from ansor.codegen.source import Argument, CSource
from ansor.measure.builder import Builder
from ansor.measure.device import Device, Job, Observation
from ansor.measure.devices.board import BoardDevice
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import TimingOptions
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from tests.measure.boards.simulated import qemu_gdb

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
TIMING = TimingOptions(timeout_seconds=0.05)
BOARDS = ("qemu-riscv32", "qemu-riscv64", "spike-rv64", "mps2-an385", "mps2-an386", "mps2-an500", "mps3-an547")
N = 64
RIGHT = f"const int *a = args[0]; int *c = args[1]; for (int i = 0; i < {N}; ++i) c[i] = a[i] + 1;"
ARGUMENTS = (Argument("a", (N,), "int32", "input"), Argument("c", (N,), "int32", "output"))
DEEPER = "__attribute__((noinline)) int deeper(volatile int *up) { volatile int here[8]; here[0] = *up; return deeper(here) + here[0]; }"
THUMB, RISCV = "thumb", "riscv"
"""Registers that a program may not write: the counter, what counts beside it, the watchdog, and what traps are told."""
REGISTERS = {
    THUMB: {"systick": 0xE000E018, "dwt": 0xE0001004, "vectors": 0xE000ED08, "protection": 0xE000ED94},
    RISCV: {"clock": 0x0200BFF8, "watchdog": 0x02004000},
}


@dataclass(frozen=True)
class Bad:
    """A program: its text, the kind of its failure, and words of what is said of it."""

    body: str
    kind: str
    says: str = ""
    before: str = ""

    @property
    def source(self) -> CSource:
        return CSource(f"{self.before}\nvoid run(void *const *args, unsigned char *workspace) {{ {self.body} }}\n", "run", ARGUMENTS)


def store(address: int) -> str:
    return f"{RIGHT} *(volatile unsigned *){address:#x}ul = 0;"


def bad_programs(board: Board, symbols: dict[str, int]) -> dict[str, Bad]:
    """By name."""
    family = THUMB if board.core.architecture == THUMB else RISCV
    middle = (board.heap_end + symbols["ansor_data_end"]) // 2 & ~63
    found = {
        "illegal": Bad("__builtin_trap();", "instruction", "an instruction that the processor does not have"),
        "nowhere": Bad("((void (*)(void))0xd0000001ul)();", "trap", "no instructions are there"),
        "absent": Bad(store(0xDFFFFFF0), "trap", "not there"),
        "recursion": Bad("volatile int start = 1; ((int *)args[1])[0] = deeper(&start);", "crash", "the stack overflowed", DEEPER),
        "endless": Bad('for (;;) __asm__ volatile("nop");', "timeout", "it does not end"),
        "far": Bad(store(middle), "out_of_bounds", "not the program's"),
        "farther": Bad(store(board.heap_end - 4096), "out_of_bounds", "not the program's"),
        "harness": Bad(store(symbols["ansor_answer"] + 40), "out_of_bounds"),
        "code": Bad(store(symbols["_start"] & ~3), "out_of_bounds"),
        "beside": Bad(f"{RIGHT} c[{N} + 400] = 1;", "out_of_bounds"),
        "past": Bad(f"{RIGHT} c[{N} + 0xc00] = 1;", "out_of_bounds", "0x3000 bytes past the end of c, at pc"),
        "band": Bad(f"{RIGHT} c[{N}] = 1;", "out_of_bounds", "past the end of 'c'"),
    }
    if board.counter.register:
        found["counter"] = Bad(store(board.counter.register), "trap")
    elif board.counter.csr:
        found["counter"] = Bad(f'{RIGHT} __asm__ volatile("csrw {board.counter.csr}, zero");', "instruction")
    return found | {name: Bad(store(address), "trap") for name, address in REGISTERS[family].items()}


@dataclass
class Bench:
    """A board, its programs by name, and jobs of them. stays: whether its memory does, from trial to trial."""

    device: Device
    bad: dict[str, Bad]
    jobs: dict[str, Job]
    stays: bool


@pytest.fixture(scope="module", params=BOARDS)
def bench(request: pytest.FixtureRequest, boards: None) -> Iterator[Bench]:
    """QEMU's boards behind their GDB server, whose memory stays from trial to trial."""
    target, board = parse_target(f"micro -board={request.param}"), find_board(request.param)
    toolchain = target.toolchain()
    assert isinstance(toolchain, ImageToolchain)
    bad, right = bad_programs(board, dict(toolchain.harness().symbols)), Bad(RIGHT, "")
    with ExitStack() as stack:
        stays = board.run.device != "spike"
        device = BoardDevice(stack.enter_context(qemu_gdb(request.param))[0], board) if stays else SimulatorDevice("spike", board)
        builder = stack.enter_context(Builder(toolchain, "image", jobs=1, timeout=120))
        reference, *built = builder.build([right.source, *(one.source for one in bad.values())])
        made = {name: one.artifact for name, one in zip(("right", *bad), (reference, *built), strict=True)}
        assert reference.artifact is not None and all(made.values()), [one.failure for one in built]
        task = MeasureTask("traps", right.source)
        jobs = {name: Job(task, one, reference.artifact, TIMING) for name, one in made.items() if one is not None}
        yield Bench(device, bad, jobs, stays)
        device.close()


def test_programs_that_end_badly_say_why_and_where_and_the_next_one_runs(bench: Bench) -> None:
    first = bench.device.run(bench.jobs["right"])
    assert isinstance(first, Observation), first
    for name, bad in bench.bad.items():
        seen = bench.device.run(bench.jobs[name])
        assert isinstance(seen, Failure) and seen.kind == bad.kind and bad.says in seen.text, (name, seen)
        assert "pc 0x" in seen.text or name in ("band", "beside", "harness"), (name, seen)
        assert "(candidate+0x" in seen.text or "(deeper" in seen.text or name in ("band", "beside", "harness", "nowhere"), (name, seen)
        assert not bench.stays or seen.counters["wire_bytes_sent"] > 0, (name, seen.counters)
        if not bench.stays and name != list(bench.bad)[-1]:
            continue
        after = bench.device.run(bench.jobs["right"])
        assert isinstance(after, Observation) and after.costs == first.costs, (name, after)


@pytest.mark.parametrize("name", ["mps2-an386", "qemu-riscv64"])
def test_a_frame_larger_than_the_stack_is_refused_with_the_numbers(name: str) -> None:
    """It may step over the guard below the stack."""
    deep = Bad(f"volatile char deep[{4 << 20}]; deep[((int *)args[0])[0]] = 1; {RIGHT}", "does_not_fit")
    with Builder(parse_target(f"micro -board={name}").toolchain(), "image", jobs=1, timeout=120) as builder:
        (built,) = builder.build([deep.source])
    assert built.artifact is None and built.failure is not None and built.failure.kind == "does_not_fit"
    assert "needs 4,194,3" in built.failure.text and f"{find_board(name).run.stack:,}" in built.failure.text


def test_a_counter_of_24_bits_that_overflows_is_a_timeout() -> None:
    """SysTick: after 2.6 million instructions of this board. A run that is shorter is counted, whatever came before it."""
    path = Path(__file__).parents[2] / "targets" / "boards" / "lm3s6965evb.toml"
    target, board = parse_target(f"micro -board={path}"), find_board(str(path))
    long = Bad(f'{RIGHT} for (int i = 0; i < 2000000; ++i) __asm__ volatile("nop");', "timeout", "the counter, which has 24 bits, overflowed")
    short = Bad(f'{RIGHT} for (int i = 0; i < 500000; ++i) __asm__ volatile("nop");', "")
    device = SimulatorDevice("qemu-system", board)
    with Builder(target.toolchain(), "image", jobs=1, timeout=120) as builder:
        made = [one.artifact for one in builder.build([Bad(RIGHT, "").source, short.source, long.source])]
        right, *_ = found = [one for one in made if one is not None]
        assert len(found) == 3
        seen = [device.run(Job(MeasureTask("long", right.source), one, right, TimingOptions(timeout_seconds=5.0))) for one in found]
    device.close()
    assert isinstance(seen[1], Observation) and 1e6 < seen[1].costs[0] < 2.6e6, seen[1]
    assert isinstance(seen[2], Failure) and seen[2].kind == "timeout" and long.says in seen[2].text, seen[2]
