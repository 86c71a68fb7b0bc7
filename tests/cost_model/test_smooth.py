"""The smooth model alone: what it predicts depends on the rows alone."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.toolchain import compile_shared, find_compiler
from ansor.cost_model.smooth import SmoothModel

LEAVE_SIGNALLING_NANS = "void leave(void) { volatile unsigned stack[16384]; for (int i = 0; i < 16384; ++i) stack[i] = 0x7f800001u; }"
"""On the stack, where BLAS routines keep what they have not computed yet."""


@pytest.mark.compiler
def test_what_the_stack_held_before_does_not_matter(tmp_path: Path) -> None:
    """A warning is an error here, and so it is to users who ask for that."""
    made = compile_shared(find_compiler("zig"), [LEAVE_SIGNALLING_NANS], tmp_path / "stack.so")
    assert made.ok, made.text
    library, random = ctypes.CDLL(str(tmp_path / "stack.so")), np.random.default_rng(0)
    for width in range(1, 10):
        mean, scale, linear, square = random.uniform(0.5, 1, (4, width)).astype(np.float32)
        for programs in (1, 2, 3, 6, 7, 100):
            rows = random.uniform(-2, 2, (programs, width)).astype(np.float32)
            standard = ((rows - mean) * scale).astype(np.float64)
            library.leave()
            logs = SmoothModel(0.25, mean, scale, linear, square).row_logs(rows)
            np.testing.assert_allclose(logs, 0.25 + standard @ linear + standard**2 @ square, atol=1e-4)
