"""Whether a library is linked with the compiler's runtime.

The embedded compiler builds its runtime from sources in the first call for a processor, which takes 5 s, while a kernel takes a tenth of a second. Few
libraries need it: those with quotients of 128-bit integers, or with float16 on processors without it. So libraries are linked without it first.
"""

from __future__ import annotations

from collections.abc import Sequence

NO_CHECKS = "-fno-sanitize=undefined"
"""For linking programs: otherwise the embedded compiler also builds its library of checks for that processor, which nothing calls, in 4 s."""

_WITHOUT = ("-rtlib=none", "-Wl,-z,defs")
"""What is missing then is an error of the linker; by default a library may lack symbols until it is loaded."""


def link_attempts(kind: str, flags: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The flags with which to link, in order: the next ones if symbols are missing with the ones before. kind: of the compiler; flags: of its driver."""
    given = tuple(flags)
    if kind != "zig" or "-shared" not in given or not {"-c", "-S"}.isdisjoint(given):
        return (given,)
    return (given + _WITHOUT, given)


def misses_symbols(said: str) -> bool:
    """Whether a linker's output is about missing symbols."""
    return "undefined symbol" in said
