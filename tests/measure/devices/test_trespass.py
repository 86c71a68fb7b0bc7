"""Candidates on simulated boards that write where they may not, or speak in the harness's place: each is a failure, and the next one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from ansor import te
from ansor.codegen.image.toolchain import ImageToolchain
from ansor.ir.dag import Dag
from ansor.measure.boards.asking import said_in
from ansor.measure.boards.checksums import text_sum
from ansor.measure.builder import Builder
from ansor.measure.device import Job, Observation
from ansor.measure.devices.simulator import SimulatorDevice
from ansor.measure.failure import Failure
from ansor.measure.reference import measure_task
from ansor.schedule.sketch import Sketch
from ansor.targets.base import parse_target
from ansor.targets.boards.catalogue import find_board
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor
from ansor.testing.device_contract import TIMING

N = 96
RIGHT = f"const int *a = args[0], *b = args[1]; int *c = args[2]; for (int i = 0; i < {N}; ++i) c[i] = a[i] + b[i];"
CONSOLES = {"mps2-an386": (0x40004000, "unsigned"), "qemu-riscv32": (0x10000000, "unsigned char")}
ANSWER = '{"costs": [], "cut_short": false, "later": false, "check": [], "sums": []}'
NOTE = "board 0 0 0 1 stack 10 memory 1 kept 2 sum 3"


def declared() -> list[Tensor]:
    a, b = te.placeholder((N,), "int32", name="A"), te.placeholder((N,), "int32", name="B")
    return [a, b, te.compute((N,), lambda i: a[i] + b[i], name="C")]


@dataclass
class Bench:
    """A device, and what runs a body on it as a candidate."""

    name: str
    device: SimulatorDevice
    builder: Builder

    def symbol(self, name: str) -> str:
        toolchain = parse_target(f"micro -board={self.name}").toolchain()
        assert isinstance(toolchain, ImageToolchain)
        return f"((volatile unsigned char *){toolchain.harness().symbols[name]}ul)"

    def said(self, text: str) -> str:
        """C that writes text to the console."""
        address, kind = CONSOLES[self.name]
        return "".join(f"*(volatile {kind} *){address}ul = {ord(one)};" for one in f"\n{text}\n")

    def run(self, body: str, tensors: list[Tensor] | None = None) -> Observation | Failure:
        """`body` in the place of the C of `tensors`; '' leaves theirs."""
        target, dag = parse_target(f"micro -board={self.name}"), Dag(tensors or declared())
        task = measure_task(dag, target)
        assert task.reference is not None
        source = target.emit(Sketch(dag).lower_row((), "candidate"), "candidate")
        text = f"void candidate(void *const *args, unsigned char *workspace) {{ {body} }}\n" if body else source.text
        program, reference = self.builder.build([replace(source, text=text), task.reference])
        assert program.artifact is not None and reference.artifact is not None, (program.failure, reference.failure)
        return self.device.run(Job(task, program.artifact, reference.artifact, TIMING))


@pytest.fixture(scope="module", params=sorted(CONSOLES))
def bench(request: pytest.FixtureRequest, boards: None) -> Iterator[Bench]:
    device = SimulatorDevice("qemu-system", find_board(request.param))
    with Builder(parse_target(f"micro -board={request.param}").toolchain(), device.form, jobs=1, timeout=120) as builder:
        yield Bench(request.param, device, builder)
    device.close()


@pytest.mark.compiler
def test_writes_outside_of_the_outputs_are_found_out(bench: Bench) -> None:
    """Outputs are right each time."""
    free = f"for (int i = 0; i < 2048; ++i) c[{N} + 400 + i] = 1;"
    for body in (f"c[{N}] = 5;", "c[-1] = 5;", free, f"{bench.symbol('ansor_answer')}[40] = 5;", f"{bench.symbol('ansor_asked')}[900] = 5;"):
        seen = bench.run(RIGHT + body)
        assert isinstance(seen, Failure) and seen.kind == "out_of_bounds", (body, seen)
        assert isinstance(bench.run(RIGHT), Observation)


@pytest.mark.compiler
def test_the_code_of_the_trial_program_stays(bench: Bench) -> None:
    """A byte of it that this run needs no more."""
    seen = bench.run(RIGHT + f"{bench.symbol('_start')}[1] ^= 64;")
    assert isinstance(seen, Failure) and seen.kind in ("out_of_bounds", "trap"), seen


@pytest.mark.compiler
def test_nothing_that_a_candidate_says_is_believed(bench: Bench) -> None:
    """An answer, a note of counts, both, beside right outputs and in their place: the console is not the program's."""
    for body in (RIGHT + bench.said(NOTE), RIGHT + bench.said(ANSWER), bench.said(ANSWER + "\n" + NOTE)):
        seen = bench.run(body)
        assert isinstance(seen, Failure) and seen.kind == "trap" and "not the program's" in seen.text, seen


@pytest.mark.compiler
@pytest.mark.parametrize("function", [te.exp, te.floor, te.sin])
def test_functions_that_the_compiler_brings_need_no_library(bench: Bench, function: Callable[[Expr], Expr]) -> None:
    """The program's text, and that of the reference, which is in double precision."""
    a = te.placeholder((20,), name="A")
    seen = bench.run("", [a, te.compute((20,), lambda i: function(a[i]), name="C")])
    assert isinstance(seen, Observation), seen


def summed(text: str, nonce: int = 5) -> str:
    return f"{text}{text_sum(text, nonce):x}\n"


def test_an_answer_that_stands_twice_is_none() -> None:
    """A failure counts in any case: it may stand behind a part of an answer. The sum is that of the text from the answer on."""
    note = NOTE.removesuffix("3")
    right, failed = summed(f"{ANSWER}\n{note}"), summed(f'{{"failure": ["timeout", "it does not end"]}}\n{note}')
    said = said_in(right, 5)
    assert said is not None and (said.line, said.marks, said.stack, said.memory, said.kept) == (ANSWER, (0, 0, 0, 1), 16, 1, 2)
    assert said_in(f"{NOTE}\n{right}", 5) is None and said_in(f"{ANSWER}\n{right}", 5) is None
    assert said_in(right, 6) is None and said_in(right.replace("stack 10", "stack 11"), 5) is None and said_in(right.replace("0 0 0 1", "0 0 0 2"), 5) is None
    assert (late := said_in(f'{{"costs": [\n{failed}', 5)) is not None and late.failed
