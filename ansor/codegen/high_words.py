"""Upper words of products of 32-bit numbers, as vectors: how integer networks rescale sums.

    int32((int64(a) * int64(b) + c) >> 32)      ->      high_words_i32x16(a, b, c)

x86 multiplies every second lane and has no use for the lanes in order: even and odd ones are multiplied apart, and their upper words are put together by one
shuffle. Extending all lanes to 64 bits and narrowing the results takes twice the instructions.
"""

from __future__ import annotations

from ansor.codegen.dialect import Helpers
from ansor.te.expr import Binary, Cast, Const, Expr

WORD = 32
FEWEST = 4
"""Lanes of the narrowest vector that is worth it."""

APART = """\
#if defined(__SSE4_1__)
#define ANSOR_EVEN_ODD 1
#else
#define ANSOR_EVEN_ODD 0
#endif"""


def high_word(expr: Cast) -> tuple[Expr, Expr, int] | None:
    """The factors and the summand, where an expression has this form and nothing in it can leave 64 bits."""
    shift = expr.value
    if expr.dtype != "int32" or not isinstance(shift, Binary) or shift.op != "shr" or not _is(shift.right, WORD):
        return None
    total: Expr = shift.left
    added = 0
    if isinstance(total, Binary) and total.op == "add" and isinstance(total.right, Const) and abs(int(total.right.value)) < 1 << 62:
        added, total = int(total.right.value), total.left
    if not isinstance(total, Binary) or total.op != "mul" or total.dtype != "int64":
        return None
    factors = [side.value for side in (total.left, total.right) if isinstance(side, Cast) and side.value.dtype == "int32"]
    return (factors[0], factors[1], added) if len(factors) == 2 else None


def _is(expr: Expr, value: int) -> bool:
    return isinstance(expr, Const) and expr.value == value


def high_words_function(helpers: Helpers, lanes: int) -> str:
    """The name of the function for this many lanes, of two vectors and a number."""
    words, wide, half = helpers.vector("int32", lanes), helpers.vector("int64", lanes), helpers.vector("int64", lanes // 2)
    unsigned, name = helpers.vector("uint64", lanes // 2), f"high_words_{words}"
    picked = [lane + k * lanes for lane in range(1, lanes, 2) for k in (0, 1)]
    even = " * ".join(f"(({half})(({unsigned}){one} << {WORD}) >> {WORD})" for one in "xy")
    apart = f"const {half} x = ({half})a, y = ({half})b; const {words} even = ({words})({even} + c), odd = ({words})((x >> {WORD}) * (y >> {WORD}) + c);"
    value = helpers.shuffle("int32", lanes, "even", "odd", picked)
    plain = f"__builtin_convertvector((__builtin_convertvector(a, {wide}) * __builtin_convertvector(b, {wide}) + c) >> {WORD}, {words})"
    helpers.instructions.setdefault("ANSOR_EVEN_ODD", APART)
    body = f"{{ if (!ANSOR_EVEN_ODD) return {plain}; {apart} return {value}; }}"
    helpers.functions.setdefault(name, f"static inline {words} {name}({words} a, {words} b, long long c) {body}")
    return name
