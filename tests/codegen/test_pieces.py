"""Values too large for one C expression: they come in pieces, their text grows with their parts, and they compute what they did."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

from ansor import te
from ansor.codegen.generate import Machine, generate
from ansor.codegen.pieces import pieces
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.ir.loops import Store, stores
from ansor.schedule.sketch import Sketch
from ansor.tasks.task import SearchTask
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor
from tests.declarations import Case
from tests.programs import TARGETS, Bench, Program, case_of, sketches

Value = Callable[[Tensor, Expr], Expr]
LENGTH = 70  # whole vectors, and some elements left over


def declared(value: Value, rest: Callable[[Tensor], Tensor] = lambda y: y) -> list[Tensor]:
    x = te.placeholder((LENGTH,), name="x")
    return [x, rest(te.compute((LENGTH,), lambda i: value(x, i), name="y"))]


def row_sum(y: Tensor) -> Tensor:
    """Pieces inside a reduction."""
    r = te.reduce_axis((0, LENGTH), name="r")
    return te.compute((3,), lambda i: te.sum(y[r] * 0.125, axis=r), name="z")


def doubled(times: int) -> Value:
    return lambda x, i: reduce(lambda e, _: e * e * 0.25 + 0.5, range(times), x[i])


def nested(times: int) -> Value:
    return lambda x, i: reduce(lambda e, k: (e + x[i] * float(k % 7)) * 0.5, range(times), x[i])


def choices(times: int) -> Value:
    """Reads that are in bounds where a condition holds only, in the other side of each other."""
    return lambda x, i: reduce(lambda e, k: te.if_then_else(i > k % 60, x[i - k % 60 - 1] * 0.5, e), range(times), x[i])


def both_sides(times: int) -> Value:
    """The same value on both sides of a choice, and a guarded read."""
    return lambda x, i: reduce(lambda e, k: te.if_then_else(i > k % 60, e * 0.5 + x[i - k % 60 - 1], te.max(e, 0.25)), range(times), x[i])


def index(times: int) -> Value:
    return lambda x, i: x[reduce(lambda e, k: te.min(te.max(e + k % 3, 2), LENGTH - 1), range(times), i)]


def maxima(times: int) -> Value:
    return lambda x, i: reduce(lambda e, k: te.max(e, x[i] * float(k)), range(times), x[i])


def shared_at_random(seed: int, parts: int = 150) -> Value:
    """Each part of two earlier ones, near ones more often; values stay small."""

    def value(x: Tensor, i: Expr) -> Expr:
        rng = np.random.default_rng(seed)
        known: list[Expr] = [x[i], x[LENGTH - 1 - i], te.max(x[i], 0.5)]
        for _ in range(parts):
            a, b = (known[max(0, len(known) - 1 - int(rng.exponential(4)))] for _ in range(2))
            k = int(rng.integers(1, 40))
            ways = (a * 0.5 + b * 0.5, te.max(a, b), te.min(a, b * 0.5), a - b * 0.25, te.if_then_else(a > b, a, b * 0.5), te.abs(a) * 0.5,
                    te.if_then_else(te.all(i >= k, b < 2.0), x[i - k], a * 0.5), (a * 4.0).astype("int32").astype("float32") * 0.125)
            known.append(ways[int(rng.integers(0, len(ways)))])
        return known[-1]

    return value


VALUES: dict[str, Value] = {
    "doubled": doubled(40), "nested": nested(200), "choices": choices(120), "both sides": both_sides(30), "index": index(120), "maxima": maxima(110),
    **{f"random {seed}": shared_at_random(seed) for seed in range(4)},
}


def programs(case: Case, number: int) -> list[Program]:
    """A program of two sketches, on one thread or two."""
    rng = np.random.default_rng(number)
    target = TARGETS[(0, 3)[number]]
    rows = [(sketch, tuple(int(rng.integers(0, size)) for size in sketch.sizes)) for sketch in sketches(case, target)[:2]]
    return [Program(case, sketch, row, target, f"program{number}_{k}") for k, (sketch, row) in enumerate(rows)]


@pytest.mark.compiler
@pytest.mark.parametrize("name", VALUES)
def test_values_in_pieces_are_right(name: str, bench: Bench) -> None:
    found: list[Program] = []
    for number, rest in enumerate((lambda y: y, row_sum)):
        tensors = declared(VALUES[name], rest)
        data = np.random.default_rng(number).uniform(-1, 1, LENGTH).astype(np.float32)
        found += programs(case_of(tensors, x=data), number)
    for program, problem in zip(found, bench.problems(found), strict=True):
        assert not problem, f"{problem}\n{program.source.text[:3000]}"


def text_of(tensors: list[Tensor], threads: int = 1) -> str:
    return generate(Sketch(Dag(tensors)).lower_row(()), Machine(32, threads)).text


@pytest.mark.parametrize("value", [doubled, nested, choices, both_sides, index, maxima])
def test_text_grows_with_the_parts(value: Callable[[int], Value]) -> None:
    sizes = [len(text_of(declared(value(times)))) for times in (400, 800)]
    assert sizes[1] < 2.5 * sizes[0] < 400_000


def test_small_values_stay_in_one_expression() -> None:
    (stored,) = [store for _, store in stores(Sketch(Dag(declared(doubled(7)))).lower_row(()).body)]
    assert isinstance(stored, Store) and not pieces(stored.value)
    assert "part0" not in text_of(declared(doubled(7))) and "part0" in text_of(declared(doubled(8)))


def test_brackets_are_not_too_deep() -> None:
    """Compilers take 256 of them inside each other."""
    for value in (doubled(100), nested(1000), choices(1000), index(500), maxima(1000)):
        depth = deepest = 0
        for letter in text_of(declared(value)):
            depth += (letter in "([{") - (letter in ")]}")
            deepest = max(deepest, depth)
        assert deepest < 200


def test_stages_that_read_twice_are_computed_once() -> None:
    """Inlined, each is a variable of one loop."""
    x = te.placeholder((LENGTH,), name="x")

    def stage(t: Tensor, k: int) -> Tensor:
        return te.compute((LENGTH,), lambda i: t[i] * t[i] * 0.5 + 0.25, name=f"s{k}")

    sizes = []
    for count in (40, 80):
        dag = Dag([x, reduce(stage, range(count), x)])
        sketch = sketches(case_of([*dag.inputs, *dag.outputs]), TARGETS[0])[0]
        text = generate(sketch.lower_row((0,) * len(sketch.choices)), Machine(32, 1)).text
        sizes.append(len(text))
    assert sizes[1] < 2.5 * sizes[0]


@pytest.mark.parametrize("extents", [(2**31 - 1,), (2**33,), (10**9, 10**9)])
def test_text_does_not_grow_with_extents(extents: tuple[int, ...]) -> None:
    x = te.placeholder((1,), "int8", name="x")
    everywhere = te.compute(extents, lambda *_: x[0], name="y")
    assert len(text_of([x, everywhere])) < 3000


def test_long_reductions_are_chosen_and_written() -> None:
    x, r = te.placeholder((2**33,), "int8", name="x"), te.reduce_axis((0, 2**33), name="r")
    task = SearchTask(tensors=[x, te.compute((1,), lambda i: te.max(x[r], axis=r), name="y")], target="cpu -threads=1")
    assert all(len(task.source(space.sketch, (0,) * len(space.sizes)).text) < 20_000 for space in task.spaces)


def test_what_no_memory_holds_is_told() -> None:
    x = te.placeholder((1,), name="x")
    with pytest.raises(DeclarationError, match=r"y of shape \(1000000000000000000, 1000000000000000000\) .float32., which is 2.63 bytes or more"):
        text_of([x, te.compute((10**18, 10**18), lambda i, j: x[0] + 1.0, name="y")])
