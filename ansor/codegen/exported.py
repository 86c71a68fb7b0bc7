"""What exported networks and kernels share: compiler options, loops on the caller's thread, and the parts of a self-test.

A self-test is a C program for recorded values: `CHECKS` reads and compares them, `RECORDED` has them, and `recorded` says in which order.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from pathlib import Path

import numpy as np

from ansor.codegen.toolchain import Compiler

CHECKS = Path(__file__).with_name("checks.h")
"""Every self-test includes it."""

RECORDED = "selftest.bin"
"""The file with the recorded values: inputs, then outputs."""

FLAGS = " ".join(Compiler("gcc", ("gcc",), "gcc").code_flags(""))
"""The options of kernels, for gcc and clang, without the processor."""

LOOPS = "void (*parallel_for)(void *pool, void (*body)(void *, long, long), void *ctx, long n), void *pool"
"""The parameters of a function that runs loops on the caller's threads, without a type of its own: several headers may be included together."""

ALONE = """
static void alone(void *pool, void (*body)(void *, long, long), void *ctx, long n) {
    (void)pool;
    body(ctx, 0, n);
}"""
"""A `parallel_for` on the caller's thread."""

CHECKED = """\
The self-test compares with the outputs that were computed when these files were written. Whole numbers have to be equal. Others may differ by a thousandth of
the largest number of their array, because compilers order sums in their own ways; numbers of two bytes by a few of their own steps (`checks.h`)."""
"""What READMEs say of self-tests."""


def march_text(march: str, made: str) -> str:
    """What READMEs say of the option for a processor. made: the kernel, or the network."""
    here = f"means the processor of the compiling machine; elsewhere, name the processor that the {made} was made for"
    return f"`-march={march}` {here if march == 'native' else 'names the processor that it was made for'}"


def recorded(kind: str, arrays: Iterable[tuple[str, tuple[int, ...], str]]) -> str:
    """A macro that lists recorded arrays in order, for an X that has a value: bytes, kind of the elements and bytes of each, and the C text of the place.

    kind: INPUT or OUTPUT; arrays: dtype, shape and place of each.
    """
    rows = []
    for dtype, shape, place in arrays:
        element = np.dtype(dtype)
        rows.append(f"X({prod(shape) * element.itemsize}, '{element.kind}', {element.itemsize}, {place})")
    return f"#define {kind}S {' '.join(rows)}"
