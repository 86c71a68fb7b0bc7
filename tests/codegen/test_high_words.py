"""Upper words of products, as vectors of every length: against 64-bit arithmetic, on numbers from the whole range."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.codegen.dialect import PRELUDE, Helpers
from ansor.codegen.high_words import high_word, high_words_function
from ansor.codegen.toolchain import compile_shared
from ansor.te.expr import Binary, Cast, Expr
from tests.programs import Bench

ENDS = (-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1)


@pytest.mark.compiler
@pytest.mark.parametrize("before", ["#undef __SSE4_1__", "", "#define ANSOR_APART __attribute__((noinline, used))"], ids=["in order", "apart", "board"])
def test_functions_are_64_bit_arithmetic(bench: Bench, tmp_path: Path, before: str) -> None:
    helpers, entries = Helpers(), []
    for lanes in (4, 8, 16):
        kind, name = helpers.vector("int32", lanes), high_words_function(helpers, lanes)
        entries.append(f"void run{lanes}(int *r, const int *a, const int *b, long long c) {{ *({kind} *)r = {name}(*({kind} *)a, *({kind} *)b, c); }}")
    library = tmp_path / "run.so"
    compiled = compile_shared(bench.compiler, ["\n".join([PRELUDE, before, helpers.text(), *entries])], library)
    assert compiled.ok, compiled.text
    run, rng = ctypes.CDLL(str(library)), np.random.default_rng(0)
    for lanes in (4, 8, 16):
        for added in (0, 1 << 31, (-128 << 32) + (1 << 31)):
            a, b = (np.where(rng.integers(0, 3, lanes) == 0, rng.choice(ENDS, lanes), rng.integers(ENDS[0], ENDS[-1], lanes)) for _ in "ab")
            given = [np.ascontiguousarray(one, np.int32) for one in (np.zeros(lanes), a, b)]
            run[f"run{lanes}"](*(ctypes.c_void_p(one.ctypes.data) for one in given), ctypes.c_longlong(added))
            assert np.array_equal(given[0], ((a * b + added) >> 32).astype(np.int32)), (lanes, added)


def test_which_expressions_have_this_form() -> None:
    x, y, wide = (te.placeholder((8,), dtype, name=name) for name, dtype in (("x", "int32"), ("y", "int32"), ("w", "int64")))

    def upper(product: Expr, shift: int = 32, dtype: str = "int32") -> Cast:
        found = (product >> te.const(shift, "int64")).astype(dtype)
        assert isinstance(found, Cast)
        return found

    product = x[0].astype("int64") * y[0].astype("int64")
    assert isinstance(product, Binary) and isinstance(product.left, Cast) and isinstance(product.right, Cast)
    assert high_word(upper(product)) == (product.left.value, product.right.value, 0)
    found = high_word(upper(product + te.const(-5, "int64")))
    assert found is not None and found[2] == -5
    for other in (upper(product, 31), upper(product, dtype="int16"), upper(x[0].astype("int64") * wide[0]), upper(x[0].astype("int64") + wide[0])):
        assert high_word(other) is None
    assert high_word(upper(product + te.const(1 << 62, "int64"))) is None
