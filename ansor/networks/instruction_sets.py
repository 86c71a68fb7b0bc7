"""Instruction sets that an exported network may have kernels for: the target of the kernels, how they are built, and where they run.

The set is chosen at run time. `FALLBACK` runs everywhere: it has no vectors and no named instructions.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from ansor.errors import ArgumentError
from ansor.support.text import did_you_mean
from ansor.targets.base import Target, parse_target


@dataclass(frozen=True)
class InstructionSet:
    """target: the target whose programs are used; march: the compiler's -march, '' for none; macro: what compilers define for such processors, '' for every
    processor; condition: a C expression that is true on processors with this set."""

    name: str
    target: str
    march: str = ""
    macro: str = ""
    condition: str = "1"

    @property
    def identifier(self) -> str:
        """The name in a form that C names may contain."""
        return self.symbol("").removesuffix("_")

    def symbol(self, name: str) -> str:
        """The C name of a symbol for this set, distinct from those of other sets."""
        return re.sub(r"\W", "_", f"{self.name}_{name}")

    def target_of(self, threads: int) -> Target:
        """The target that its programs are chosen for."""
        target = parse_target(f"{self.target} -threads={threads}")
        return target if self.march else replace(target, hardware=replace(target.hardware, vector_bytes=1, features=frozenset()))


def _x86(level: str, *features: str) -> InstructionSet:
    supported = " && ".join(f'__builtin_cpu_supports("{one}")' for one in features)
    return InstructionSet(level, f"cpu -mcpu={level}", level, "__x86_64__", supported)


_V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "fma")  # every processor that has these has the rest of that level, which not all compilers can test for
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_DOTPROD = "(getauxval(16) >> 20 & 1)"  # AT_HWCAP and HWCAP_ASIMDDP of Linux

FALLBACK = InstructionSet("c99", "cpu -mcpu=x86-64")
KNOWN = (
    _x86("x86-64-v2", *_V2), _x86("x86-64-v3", *_V3), _x86("x86-64-v4", *_V4),
    InstructionSet("armv8-a", "arm -mcpu=cortex-a53", "armv8-a", "__aarch64__"),
    InstructionSet("armv8.2-a+dotprod", "arm -mcpu=cortex-a76", "armv8.2-a+dotprod", "__aarch64__", _DOTPROD),
)  # fmt: skip
"""Preferred sets come later."""

NATIVE = "native"
"""What the command line calls the processor of this machine, for which an export has only one set."""

DEFAULT = ("x86-64-v3", "x86-64-v4")
"""For x86 processors of the last ten years; all others run the fallback."""


def instruction_sets(names: Collection[str]) -> tuple[InstructionSet, ...]:
    """The sets with these names, in the order in which a processor tries them, the fallback last. Raises ArgumentError for unknown names."""
    known = [one.name for one in KNOWN]
    wrong = [name for name in names if name not in known] if isinstance(names, Collection) and not isinstance(names, str) else [names]
    if wrong:
        hint = "" if wrong[0] in (*known, NATIVE) else did_you_mean(str(wrong[0]), known)
        cure = f"give a tuple of {', '.join(known)}; {FALLBACK.name}, which runs everywhere, is always added"
        if isinstance(names, str) and names in known:
            raise ArgumentError(f"isas={names!r} is a string; give a tuple: ({names!r},)")
        if wrong[0] == NATIVE:
            cure = "for this machine's processor alone, export the network that ansor.compile returns, or give --isas native without other sets"
        raise ArgumentError(f"asked for a network for {names!r:.80}{hint}; {cure}")
    return (*(one for one in reversed(KNOWN) if one.name in names), FALLBACK)
