"""Programs that are broken on purpose: does a device detect the same errors as this machine, and do correct programs pass?

    python benchmarks/broken_programs.py [--device native|qemu-aarch64|qemu-arm|qemu-riscv64] [--broken 1000] [--right 10000] [--seed 0]

Mistakes are put into the text of programs of several operators and dtypes, or into their outputs. Each runs as a trial program. The check of every element on
the device must agree with `measure/verify.py` on the same outputs; sums of blocks must detect every error of more than 16 times its bound, and none in a
correct program.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from broken_outputs import broken, right
from broken_text import mutants
from numpy.typing import NDArray

from ansor import te
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import find_compiler
from ansor.codegen.trial.program import triple_here
from ansor.measure.trial.answer import Answer, OutputCheck, OutputSums
from ansor.measure.trial.fill import fills_of, key_of
from ansor.measure.trial.kept import KeptFile, read_kept
from ansor.measure.trial.recipe import File, Source, SumsRequest, check_lines, input_lines, moves_line, recipe_text, sums_lines
from ansor.measure.trial.runs import answer_of
from ansor.measure.trial.sums import BLOCK, COUNT, sums_of, unsure_blocks, wrong_blocks
from ansor.measure.trial.transport import Ended, failed_by_signal
from ansor.measure.verify import difference, tolerances
from ansor.search.sampling import SampledSpace
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor

Array = NDArray[np.generic]
Bounds = NDArray[np.float64]
TARGET = "cpu -mcpu=x86-64 -threads=1"  # 128-bit vectors and no intrinsics, so that the C builds for every processor
DEVICES = {
    "native": (triple_here(), "native", ()),
    "qemu-aarch64": ("aarch64-linux-musl", "cortex_a76", ("qemu-aarch64", "-cpu", "cortex-a76")),
    "qemu-arm": ("arm-linux-musleabihf", "cortex_a7", ("qemu-arm",)),
    "qemu-riscv64": ("riscv64-linux-musl", "sifive_u74", ("qemu-riscv64",)),
}
PROGRAMS = 4  # of each operator, with random schedules
FAR = 16.0  # times the bound: errors that sums of blocks must detect


def product(dtype: str, n: int = 20, m: int = 24, k: int = 33, wide: str = "") -> list[Tensor]:
    """C = A B, summed in `wide`."""
    a, b, r = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B"), te.reduce_axis((0, k), name="k")
    kind = wide or dtype
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r].astype(kind) * b[r, j].astype(kind), axis=r), name="C")]


def softmax(rows: int = 12, columns: int = 40) -> list[Tensor]:
    """Softmax of each row."""
    x = te.placeholder((rows, columns), name="X")
    return [x, te.nn.softmax(x)]


def window(dtype: str = "float32") -> list[Tensor]:
    """Sums of three neighbours, rectified."""
    x, r = te.placeholder((16, 42), dtype, name="X"), te.reduce_axis((0, 3), name="r")
    s = te.compute((16, 40), lambda i, j: te.sum(x[i, j + r], axis=r), name="S")
    return [x, te.compute((16, 40), lambda i, j: te.maximum(s[i, j], te.const(0, dtype)), name="C")]


def largest() -> list[Tensor]:
    """The largest of each column."""
    x, r = te.placeholder((30, 64), name="X"), te.reduce_axis((0, 30), name="r")
    return [x, te.compute((64,), lambda j: te.max(x[r, j], axis=r), name="C")]


def quotient(dtype: str = "float64") -> list[Tensor]:
    """A / (2 + B)."""
    a, b = te.placeholder((24, 30), dtype, name="A"), te.placeholder((24, 30), dtype, name="B")
    return [a, b, te.compute((24, 30), lambda i, j: a[i, j] / (b[i, j] + te.const(2, dtype)), name="C")]


def comparison() -> list[Tensor]:
    """A < B."""
    a, b = te.placeholder((24, 30), name="A"), te.placeholder((24, 30), name="B")
    return [a, b, te.compute((24, 30), lambda i, j: a[i, j] < b[i, j], name="C")]


def saturated() -> list[Tensor]:
    """The hyperbolic tangent of large sums: nearly all elements are at its limits, and the others have the errors of the sums."""
    a, b, r = te.placeholder((24, 64), name="A"), te.placeholder((30, 64), name="B"), te.reduce_axis((0, 64), name="r")
    s = te.compute((24, 30), lambda i, j: te.sum(a[i, r] * b[j, r] * 100.0, axis=r), name="S")
    return [a, b, te.compute((24, 30), lambda i, j: te.tanh(s[i, j]), name="C")]


OPERATORS: dict[str, Callable[[], list[Tensor]]] = {
    "product float32": lambda: product("float32"), "product float16": lambda: product("float16"), "product float64": lambda: product("float64"),
    "product int8 to int32": lambda: product("int8", wide="int32"), "softmax": softmax, "window float32": window, "window int16": lambda: window("int16"),
    "largest": largest, "quotient": quotient, "comparison": comparison, "saturated": saturated,
}  # fmt: skip


@dataclass
class Tally:
    """Counts of outcomes. `disagreed`, `missed` and `alarms` have to stay empty."""

    compared: int = 0
    wrong: int = 0
    far: int = 0
    right: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    mistakes: Counter[str] = field(default_factory=Counter)
    disagreed: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.disagreed or self.missed or self.alarms)


class Bench:
    """Builds trial programs and runs them on one device. `bench` opens it."""

    def __init__(self, device: str, folder: Path) -> None:
        triple, mcpu, self._before = DEVICES[device]
        self._toolchain = CToolchain(find_compiler(), mcpu, triple)
        self._toolchain.prepare("program")
        self.folder = folder
        self._count = 0

    def built(self, source: CSource) -> Path | None:
        """The path of the built program; None if the source does not compile."""
        self._count += 1
        making = self._toolchain.build([source], "program", self.folder / f"program{self._count}", timeout=120)
        return making.artifacts[0].path if making.artifacts else None

    def run(self, program: Path, mode: str, kept: Path | str, lines: Sequence[str], seconds: float = 20.0) -> Answer:
        """The answer of a program."""
        command = [*self._before, str(program), mode, str(kept)]
        try:
            ended = subprocess.run(command, input=recipe_text(lines), capture_output=True, text=True, timeout=seconds, check=False, cwd=self.folder)
        except subprocess.TimeoutExpired:
            return Answer(None, later=True)
        if ended.returncode < 0:
            return answer_of(Ended("", failed_by_signal(str(ended.returncode), -ended.returncode)))
        return answer_of(Ended(ended.stdout))


@contextmanager
def bench(device: str) -> Iterator[Bench]:
    """A bench with its own folder."""
    folder = Path(tempfile.mkdtemp(prefix="ansor-broken-"))
    try:
        yield Bench(device, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Subject:
    """One operator on a bench: its reference, correct programs, and a program that writes the outputs that it is given."""

    def __init__(self, name: str, on: Bench, rng: random.Random) -> None:
        self.task = SearchTask(tensors=OPERATORS[name](), target=TARGET, name="operator")
        self.name, self.on, self._rng = name, on, rng
        assert self.task.measure_task.reference is not None
        self.reference = self.task.measure_task.reference
        program = on.built(self.reference)
        assert program is not None
        self._program = program
        self.outputs = [one for one in self.reference.arguments if one.role == "output"]
        self.declared = [one for one in self.candidates(1)[0].arguments if one.role == "output"]
        self._replay = self._replaying()

    def candidates(self, count: int) -> list[CSource]:
        """Correct programs with random schedules."""
        spaces = self.task.spaces
        draw = np.random.default_rng(self._rng.randrange(1 << 32))
        chosen = [spaces[self._rng.randrange(len(spaces))] for _ in range(count)]
        return [self.task.source(space.sketch, SampledSpace(space).sample(1, draw)[0]) for space in chosen]

    def kept(self, seed: int, candidate: CSource) -> tuple[Path, KeptFile]:
        """The reference's outputs for a seed, as the file and its contents."""
        place = self.on.folder / f"kept {self.name} {seed}"
        measured = self.task.measure_task
        lines = [*input_lines(self.reference.arguments, self.sources(candidate, seed)), moves_line(seed, measured.rounding)]
        answer = self.on.run(self._program, "reference", place, lines)
        assert answer.failure is None, answer.failure
        return place, read_kept(place.read_bytes(), self.outputs)

    def try_text(self, source: CSource, seed: int, kept: tuple[Path, KeptFile], tally: Tally, what: str) -> None:
        """Build and run a program, and compare the device's verdict with this machine's."""
        program = self.on.built(source)
        if program is None:
            tally.ended["does not compile"] += 1
            return
        self.try_program(program, source, self.sources(source, seed), seed, kept, tally, what)
        program.unlink()

    def try_program(self, program: Path, source: CSource, sources: dict[str, Source], seed: int, kept: tuple[Path, KeptFile], tally: Tally, what: str) -> None:
        """The same for a program that is already built."""
        measured, place = self.task.measure_task, self.on.folder / "outputs"
        requests = [SumsRequest(one.name, BLOCK, COUNT, key_of(seed, one.name)) for one in self.declared]
        lines = [*input_lines(source.arguments, sources), *check_lines(source, self.outputs, measured.reduction, measured.rounding),
                 *sums_lines(source.arguments, requests), f"outputs {place}"]  # fmt: skip
        answer = self.on.run(program, "trial", kept[0], lines)
        if answer.failure is not None or answer.later:
            tally.ended[answer.failure.kind if answer.failure else "timeout"] += 1
            return
        self._judge(answer, place.read_bytes(), source, seed, kept[1], tally, what)

    def replay(self, arrays: Sequence[Array], seed: int, kept: tuple[Path, KeptFile], tally: Tally, what: str) -> None:
        """The same for a program that writes these outputs."""
        program, source = self._replay
        sources: dict[str, Source] = {}
        for one, array in zip(self.declared, arrays, strict=True):
            path = self.on.folder / f"answer of {one.name}"
            path.write_bytes(array.tobytes())
            sources[f"answer of {one.name}"] = File(one.dtype, str(path), array.nbytes)
        self.try_program(program, source, sources, seed, kept, tally, what)

    def allowed(self, kept: KeptFile, name: str) -> Bounds:
        """The allowed error of each element of an output; shape () if it is the same for all."""
        one, measured = next(one for one in self.declared if one.name == name), self.task.measure_task
        if np.dtype(one.dtype).kind != "f":
            return np.zeros(())
        with np.errstate(over="ignore"):
            rounded = np.abs(kept.outputs[name].astype(one.dtype).astype(np.float64))
        scale = float(rounded[np.isfinite(rounded)].max(initial=0.0))
        return tolerances(measured.rounding or one.dtype, measured.reduction, scale, kept.input_scale, kept.moves[name])

    def sources(self, source: CSource, seed: int) -> dict[str, Source]:
        """How a program's inputs are filled."""
        ranges = {name: (low, high) for name, low, high in self.task.measure_task.ranges}
        return dict(fills_of(source.arguments, seed, ranges))

    def _replaying(self) -> tuple[Path, CSource]:
        answers = [replace(one, name=f"answer of {one.name}", role="input") for one in self.declared]
        copies = " ".join(f"memcpy(args[{len(answers) + n}], args[{n}], {one.physical_size * np.dtype(one.dtype).itemsize});" for n, one in enumerate(answers))
        text = f"#include <string.h>\nvoid kernel(void *const *args, unsigned char *workspace, void *parallel_for, void *pool) {{ {copies} }}\n"
        source = CSource(text, "kernel", (*answers, *self.declared))
        program = self.on.built(source)
        assert program is not None
        return program, source

    def _judge(self, answer: Answer, content: bytes, source: CSource, seed: int, kept: KeptFile, tally: Tally, what: str) -> None:
        tally.compared += 1
        checks = {source.arguments[one.place].name: one for one in answer.checks}
        sums = {source.arguments[one.place].name: one for one in answer.sums}
        at, any_wrong = 0, False
        for one in self.declared:
            size = one.physical_size * np.dtype(one.dtype).itemsize
            found = np.frombuffer(content[at : at + size], one.dtype).reshape(one.shape)
            at += size
            any_wrong |= self._judge_output(one, found, checks[one.name], sums[one.name], seed, kept, tally, f"{self.name}, {what}")
        tally.wrong += any_wrong
        tally.right += not any_wrong

    def _judge_output(
        self, one: Argument, found: Array, check: OutputCheck, sums: OutputSums, seed: int, kept: KeptFile, tally: Tally, what: str
    ) -> bool:
        measured, expected = self.task.measure_task, kept.outputs[one.name]
        text = difference(one.name, found, expected, reduction=measured.reduction, rounding=measured.rounding, input_scale=kept.input_scale,
                          moves=kept.moves[one.name])  # fmt: skip
        if bool(text) != bool(check.wrong or check.unwritten):
            tally.disagreed.append(f"{what}: here {text!r}, on the device {check}")
        floats, allowed = found.dtype.kind == "f", self.allowed(kept, one.name)
        own = sums_of(sums.place, expected, BLOCK, COUNT, key_of(seed, one.name))
        shown = wrong_blocks(sums, own, found.size, allowed, unsure_blocks(expected, one.dtype, BLOCK) if floats else ())
        if not text and shown:
            tally.alarms.append(f"{what}: blocks {shown}")
        if text and _is_far(found, expected, allowed):
            tally.far += 1
            if not shown:
                tally.missed.append(f"{what}: {text}")
        return bool(text)


def _is_far(found: Array, expected: Array, allowed: Bounds) -> bool:
    """Whether some error exceeds both 16 times its own bound and the sum of the bounds in its block."""
    if found.dtype.kind != "f":
        return True
    with np.errstate(invalid="ignore", over="ignore"):
        wide = expected.astype(np.float64)
        away = np.abs(found.astype(np.float64) - wide)
        return bool((np.isfinite(wide) & np.isfinite(wide.astype(found.dtype)) & ~(away <= _by_block(allowed, wide.shape))).any())



def _by_block(allowed: Bounds, shape: tuple[int, ...]) -> Bounds:
    """For each element, the larger of 16 times its bound and the sum of the bounds in its block."""
    if not allowed.ndim:
        return np.asarray(FAR * allowed)
    sums = np.add.reduceat(allowed.reshape(-1), np.arange(0, allowed.size, BLOCK))
    return np.asarray(np.maximum(FAR * allowed, np.repeat(sums, BLOCK)[: allowed.size].reshape(shape)))


def break_texts(subject: Subject, count: int, tally: Tally, rng: random.Random) -> None:
    """Try at most `count` mutants of a few programs of an operator."""
    programs = subject.candidates(PROGRAMS if count > 20 else 1)
    for number, program in enumerate(programs):
        seed = rng.randrange(1 << 30)
        kept = subject.kept(seed, program)
        for name, mutant in mutants(program, -(-count // len(programs)), rng):
            tally.mistakes[f"text: {name}"] += 1
            subject.try_text(mutant, seed, kept, tally, f"{name} in program {number}")


def break_outputs(subject: Subject, count: int, tally: Tally, rng: random.Random) -> None:
    """Try mistakes in the outputs of correct programs."""
    candidate = subject.candidates(1)[0]
    kept, seed = subject.kept(0, candidate), 0
    for number in range(count):
        if number % 50 == 0:
            seed = rng.randrange(1 << 30)
            kept = subject.kept(seed, candidate)
        made = [broken(kept[1].outputs[one.name], one.dtype, subject.allowed(kept[1], one.name), rng) for one in subject.declared]
        tally.mistakes[f"outputs: {made[0][0]}"] += 1
        subject.replay([array for _, array in made], seed, kept, tally, f"{made[0][0]} number {number}")


def run_right(subject: Subject, count: int, tally: Tally, rng: random.Random) -> None:
    """Try correct programs: some with random schedules, others with errors that rounding may cause."""
    programs = [(source, program) for source in subject.candidates(PROGRAMS if count > 20 else 1) if (program := subject.on.built(source)) is not None]
    for number in range(-(-count // 10)):
        seed = rng.randrange(1 << 30)
        source, program = programs[number % len(programs)]
        kept = subject.kept(seed, source)
        for other, built in programs:
            subject.try_program(built, other, subject.sources(other, seed), seed, kept, tally, f"right, seed {seed}")
        for _ in range(10 - len(programs)):
            arrays = [right(kept[1].outputs[one.name], one.dtype, subject.allowed(kept[1], one.name), rng) for one in subject.declared]
            subject.replay(arrays, seed, kept, tally, f"right, perturbed, seed {seed}")
        kept[0].unlink()


def tried(device: str, count_broken: int, count_right: int, seed: int, names: Sequence[str] = tuple(OPERATORS)) -> tuple[Tally, Tally]:
    """The outcomes of broken and of correct programs of these operators, in these total numbers."""
    rng, of_broken, of_right = random.Random(seed), Tally(), Tally()
    with bench(device) as on:
        for name in names:
            subject = Subject(name, on, rng)
            texts = -(-count_broken // (2 * len(names)))
            break_texts(subject, texts, of_broken, rng)
            break_outputs(subject, -(-count_broken // len(names)) - texts, of_broken, rng)
            run_right(subject, -(-count_right // len(names)), of_right, rng)
    return of_broken, of_right


def _lines(broken_ones: Tally, right_ones: Tally) -> Iterator[str]:
    yield f"broken: {broken_ones.compared} ran to the end: {broken_ones.wrong} wrong, {broken_ones.right} still correct; others: {dict(broken_ones.ended)}"
    yield f"        {len(broken_ones.disagreed)} on which the device and this machine disagree"
    yield f"        {broken_ones.far} outputs beyond 16 times the bound, {len(broken_ones.missed)} of them not detected by sums of blocks"
    alarms = len(right_ones.alarms) + len(broken_ones.alarms)
    yield f"right:  {right_ones.compared} compared, {right_ones.wrong} reported as wrong, {alarms} false alarms of sums; others: {dict(right_ones.ended)}"
    yield f"mistakes: {dict(broken_ones.mistakes)}"
    yield from [*broken_ones.disagreed, *broken_ones.missed, *broken_ones.alarms, *right_ones.disagreed, *right_ones.alarms][:20]


def main() -> int:
    """Print the outcomes; 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=sorted(DEVICES), default="native")
    parser.add_argument("--broken", type=int, default=1000)
    parser.add_argument("--right", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    of_broken, of_right = tried(given.device, given.broken, given.right, given.seed)
    print(f"device {given.device}, seed {given.seed}")
    print("\n".join(_lines(of_broken, of_right)))
    return 0 if of_broken.clean and of_right.clean and not of_right.wrong else 1


if __name__ == "__main__":
    raise SystemExit(main())
