"""Loops as they are."""

from ansor import te
from ansor.codegen.generate import PATTERNS
from ansor.codegen.patterns.plain_loops import PLAIN_LOOPS
from tests.codegen.patterns.forms import body, forms


def test_plain_loops_are_what_is_left() -> None:
    x = te.placeholder((4, 3), name="x")
    y = te.compute((4, 3), lambda i, j: x[i, j] + 1.0, name="y")
    assert PATTERNS[-1] is PLAIN_LOOPS
    assert forms([x, y]) == "f_nest0(x, y)\n  for y_i in 4\n    for y_j in 3\n      plain loops  y: element by element"
    assert "for (long y_j = 0; y_j < 3; ++y_j) {\n      y[y_i * 3 + y_j] = (x[y_i * 3 + y_j] + 1.0f);" in body([x, y])
