"""What integers do at their ends: compiled, interpreted and evaluated alike, and as Python's own integers say, cut to the dtype."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ansor
from ansor import te
from ansor.codegen.dialect import Helpers
from ansor.codegen.values import Lanes, Writer, vectorizable
from ansor.ir import interpreter
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.ir.linear import Linear, Var, of
from ansor.ir.loops import Access, Buffer, IndexValue
from ansor.ir.simplify import simplified
from ansor.ir.value_ranges import Ranges, of_operation
from ansor.schedule.lower import lower
from ansor.schedule.sketch import Sketch
from ansor.te.dtypes import INTEGER_LIMITS
from ansor.te.expr import Binary, Const, Expr, binary
from ansor.te.tensor import Tensor

DTYPES = ("int8", "uint8", "int16", "int32", "int64")
Array = NDArray[np.generic]
Model = Callable[[int, int], int]


def wrapped(value: int, dtype: str) -> int:
    low, high = INTEGER_LIMITS[dtype]
    return (value - low) % (high - low + 1) + low


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


def models(dtype: str) -> dict[str, Model]:
    bits = 8 * np.dtype(dtype).itemsize
    return {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor,
        "floordiv": lambda a, b: a // b if b else 0, "floormod": lambda a, b: a % b if b else 0,
        "truncdiv": truncated, "truncmod": lambda a, b: a - truncated(a, b) * b if b else 0, "min": min, "max": max,
        "shl": lambda a, b: a << b if 0 <= b < bits else 0, "shr": lambda a, b: a >> b if 0 <= b < bits else -(a < 0),
    }  # fmt: skip


def edges(dtype: str) -> list[int]:
    low, high = INTEGER_LIMITS[dtype]
    bits = 8 * np.dtype(dtype).itemsize
    return sorted({low, low + 1, max(low, -1), max(low, -2), 0, 1, 2, 7, bits - 1, bits, high - 1, high})


def plain_loops(tensors: list[Tensor], inputs: dict[str, Array]) -> list[Array]:
    dag = Dag(tensors)
    found = interpreter.run(simplified(lower(Sketch(dag).state, {})), inputs)
    return [found[tensor.name] for tensor in dag.outputs]


def check(tensors: list[Tensor], outputs: list[Tensor], inputs: dict[str, Array], expected: list[list[int]]) -> None:
    kernel = ansor.auto_schedule(tensors, trials=0, target="cpu -threads=1")
    result = kernel(*inputs.values())
    compiled = list(result) if isinstance(result, (list, tuple)) else [result]
    for how, found in (("compiled", compiled), ("evaluated", evaluate(outputs, inputs)), ("interpreted", plain_loops(tensors, inputs))):
        for output, one, wanted in zip(outputs, found, expected, strict=True):
            assert output.compute is not None
            assert np.asarray(one).tolist() == wanted, f"{how}: {output.compute.body}"


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_at_the_ends(dtype: str) -> None:
    pairs = [(a, b) for a in edges(dtype) for b in edges(dtype)]
    a, b = te.placeholder((len(pairs),), dtype, name="a"), te.placeholder((len(pairs),), dtype, name="b")
    outputs, expected = [], []
    for op, model in models(dtype).items():
        outputs.append(te.compute((len(pairs),), lambda i, op=op: binary(op, a[i], b[i]), name=op))
        expected.append([wrapped(model(x, y), dtype) for x, y in pairs])
    outputs += [te.compute((len(pairs),), lambda i: ~a[i], name="inverted"), te.compute((len(pairs),), lambda i: te.abs(a[i]), name="absolute")]
    expected += [[wrapped(~x, dtype) for x, _ in pairs], [wrapped(abs(x), dtype) for x, _ in pairs]]
    inputs = {name: np.array(column, dtype) for name, column in zip("ab", zip(*pairs, strict=True), strict=True)}
    check([a, b, *outputs], outputs, inputs, expected)


@pytest.mark.compiler
@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(seed: int) -> None:
    """Of all dtypes, some parts known to be small, constants among them, deep enough that one overflow meets another."""
    rng = random.Random(seed)
    count = 64
    values = {dtype: [rng.choice(edges(dtype)) for _ in range(count)] for dtype in DTYPES}
    inputs = {dtype: te.placeholder((count,), dtype, name=f"x_{dtype}") for dtype in DTYPES}

    def drawn(i: Expr, dtype: str, depth: int) -> tuple[Expr, list[int]]:
        choice = rng.random()
        if depth == 0 or choice < 0.1:
            if choice < 0.05:
                value = rng.choice(edges(dtype))
                return te.const(value, dtype), [value] * count
            return inputs[dtype][i], values[dtype]
        if choice < 0.3:
            inner, found = drawn(i, rng.choice(DTYPES), depth - 1)
            return te.cast(dtype, inner), [wrapped(value, dtype) for value in found]
        op, model = rng.choice(list(models(dtype).items()))
        left, a = drawn(i, dtype, depth - 1)
        right, b = drawn(i, dtype, depth - 1)
        if isinstance(right, Const) and (op in ("shl", "shr") or right.value == 0):
            right, b = te.const(3, dtype), [3] * count
        return binary(op, left, right), [wrapped(model(x, y), dtype) for x, y in zip(a, b, strict=True)]

    outputs: list[Tensor] = []
    expected: list[list[int]] = []
    for k in range(24):
        kept: list[list[int]] = []

        def body(i: Expr, kept: list[list[int]] = kept, k: int = k) -> Expr:
            expr, found = drawn(i, DTYPES[k % len(DTYPES)], 4)
            kept.append(found)
            return expr

        outputs.append(te.compute((count,), body, name=f"o{k}"))
        expected += kept
    read = {f"x_{dtype}": np.array(values[dtype], dtype) for dtype in DTYPES}
    used = {node.name for node in Dag(outputs_with(inputs, outputs)).inputs}
    check(outputs_with(inputs, outputs), outputs, {name: array for name, array in read.items() if name in used}, expected)


def outputs_with(inputs: dict[str, Tensor], outputs: list[Tensor]) -> list[Tensor]:
    read = {id(node.tensor) for output in outputs if output.compute for node in output.compute.reads}
    return [*(tensor for tensor in inputs.values() if id(tensor) in read), *outputs]


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_products_wrap(dtype: str) -> None:
    high = INTEGER_LIMITS[dtype][1]
    a, r = te.placeholder((5, 37), dtype, name="a"), te.reduce_axis(37, "r")
    outputs = [
        te.compute((5,), lambda i: te.sum(a[i, r], axis=r), name="total"), te.compute((5,), lambda i: te.prod(a[i, r], axis=r), name="product"),
        te.compute((5,), lambda i: te.sum(a[i, r] * a[i, r], axis=r), name="squares"),
    ]  # fmt: skip
    rows = [[high] * 37, [INTEGER_LIMITS[dtype][0]] * 37, [high - k for k in range(37)], [1] * 37, [3] * 37]
    product = [1] * 5
    for k, row in enumerate(rows):
        for value in row:
            product[k] = wrapped(product[k] * value, dtype)
    squares = [wrapped(sum(value * value for value in row), dtype) for row in rows]
    check([a, *outputs], outputs, {"a": np.array(rows, dtype)}, [[wrapped(sum(row), dtype) for row in rows], product, squares])


@pytest.mark.compiler
def test_comparisons_are_of_wrapped_values() -> None:
    a = te.placeholder((3,), "int32", name="a")
    more = te.compute((3,), lambda i: ((a[i] + 1) > a[i]).astype("int32"), name="more")
    check([a, more], [more], {"a": np.array([2**31 - 1, 0, -(2**31)], np.int32)}, [[0, 1, 1]])


@pytest.mark.compiler
@pytest.mark.parametrize(("index", "model"), [
    (lambda i: (i * 50_000_000) % 1000, lambda i: i * 50_000_000 % 1000), (lambda i: (i + (2**31 - 1) + 1) % 1000, lambda i: (i + 2**31) % 1000),
    (lambda i: (i + 2**31) % 1000, lambda i: (i + 2**31) % 1000), (lambda i: (i << 27) % 1000, lambda i: (i << 27) % 1000),
    (lambda i: (i * 3) >> 1, lambda i: i * 3 >> 1), (lambda i: (i * 5) & 31, lambda i: i * 5 & 31), (lambda i: i + 2**31 - 2**31, lambda i: i),
])  # fmt: skip
def test_indices_do_not_wrap_on_their_way(index: Callable[[Expr], Expr], model: Callable[[int], int]) -> None:
    """Nor do values of axes alone, which are cut at their end; indices with something read in them are computed likewise."""
    a, z = te.placeholder((1000,), "int32", name="a"), te.placeholder((100,), "int64", name="z")
    outputs = [
        te.compute((100,), lambda i: a[index(i)], name="picked"), te.compute((100,), lambda i: index(i).astype("int32") + 0 * a[i], name="value"),
        te.compute((100,), lambda i: a[z[i] + index(i)], name="moved"),
    ]  # fmt: skip
    values = np.arange(1000, dtype=np.int32)
    wanted = [model(k) for k in range(100)]
    check([a, z, *outputs], outputs, {"a": values, "z": np.zeros(100, np.int64)}, [wanted] * 3)


I32, I8 = Buffer("a", (8, 8), "int32", "input"), Buffer("n", (8, 8), "int8", "input")
ROW, COLUMN = Var("i", 8), Var("j", 8)


def read(buffer: Buffer) -> Access:
    return Access(buffer, (of(ROW), of(COLUMN)), buffer.dtype)


def test_code_provides_for_what_can_happen_only() -> None:
    narrow, wide = read(I8).astype("int32"), read(I32)
    writer, lanes = Writer(Helpers()), Writer(Helpers(), lanes=Lanes(COLUMN, 4, Linear()))
    for expr, text in (
        (narrow * narrow + narrow, "((((int)n[i * 8 + j]) * ((int)n[i * 8 + j])) + ((int)n[i * 8 + j]))"),
        (wide + 1, "(int)((unsigned int)a[i * 8 + j] + (unsigned int)1)"), (wide % 8, "(int)ansor_floormod(a[i * 8 + j], 8)"),
        (te.truncdiv(wide, narrow), "truncdiv_any_i32(a[i * 8 + j], ((int)n[i * 8 + j]))"), (te.truncdiv(narrow, te.max(narrow, 1)), "(((int)n[i * 8 + j]) / "),
        (te.truncdiv(wide, -1), "truncdiv_any_i32"), (te.truncdiv(narrow, -1), "(((int)n[i * 8 + j]) / (-1))"), (narrow << 2, "(int)((unsigned int)"),
        (wide >> 2, "(a[i * 8 + j] >> 2)"), (wide << (narrow & 7), "shl_i32("), (IndexValue(of(ROW)) + 3, "((int)(i) + 3)"),
    ):  # fmt: skip
        assert writer.scalar(expr).startswith(text), writer.scalar(expr)
    assert lanes.vector(wide + wide) == "(i32x4)((u32x4)*(const i32x4 *)&a[i * 8] + (u32x4)*(const i32x4 *)&a[i * 8])"
    assert lanes.vector(wide << 3) == "(i32x4)((u32x4)*(const i32x4 *)&a[i * 8] << 3)" and lanes.vector(wide >> 3) == "(*(const i32x4 *)&a[i * 8] >> 3)"
    assert vectorizable(wide << 3, COLUMN) and not vectorizable(wide << wide, COLUMN) and not vectorizable(wide // wide, COLUMN)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod", "bitand", "shr"])
def test_ranges_hold_every_value(op: str) -> None:
    rng = random.Random(op)
    for _ in range(300):
        (a, b), (c, d) = (sorted((rng.randint(-9, 9), rng.randint(-9, 9))) for _ in range(2))
        found = of_operation(op, (a, b), (c, d))
        values = [models("int32")[op](x, y) for x in range(a, b + 1) for y in range(c, d + 1)]
        assert found is None or (found[0] <= min(values) and max(values) <= found[1]), (op, (a, b), (c, d), found)


def test_ranges_are_worked_out_once() -> None:
    expr: Expr = read(I32)
    for _ in range(60):
        expr = expr + expr  # 2^60 nodes when written out
    assert isinstance(expr, Binary) and Ranges().may_wrap(expr)
