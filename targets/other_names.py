"""Names that other compilers use for processors and options of targets, LLVM above all: what to write here instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ansor.errors import TargetError
from ansor.support.text import did_you_mean
from ansor.targets.architecture import architecture_here, architecture_of

PROCESSORS = {"core-avx2": "haswell", "core-avx-i": "ivybridge", "corei7-avx": "sandybridge", "core2": "x86-64", "corei7": "x86-64-v2", "generic": "native",
              "icelake-client": "icelake-server", "tigerlake": "icelake-server", "skx": "skylake-avx512"}  # fmt: skip
"""The name of a processor elsewhere -> the name here."""

IGNORED = ("keys", "device", "libs", "link-params", "model", "system-lib", "runtime", "executor", "mfloat-abi", "mabi", "fast-math", "opt-level")
"""Options elsewhere that have no meaning here."""


class HasField(Protocol):
    """An option of a kind: `-name=value` sets `field`."""

    @property
    def name(self) -> str: ...

    @property
    def field(self) -> str: ...


class HasDefault(Protocol):
    """A kind of target: `default(mcpu)` raises TargetError for an unknown processor."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Sequence[HasField]: ...

    @property
    def default(self) -> Callable[[str], object]: ...


def kind_hint(name: str, kinds: Iterable[HasDefault], names: Iterable[str]) -> str:
    """A hint for an unknown kind of target: a processor or a board is an option of one, `c` is `cpu`; else a similar one of the `names`."""
    if name == "c":
        return ", which is cpu here"
    known = PROCESSORS.get(name, name)
    elsewhere = architecture_of(known) == "ARM" != architecture_here()
    for kind in sorted(kinds, key=lambda one: one.name != "cpu"):
        option = next((one.name for one in kind.options if one.field == "mcpu"), "")
        if option and not (elsewhere and kind.name == "cpu") and _takes(kind, known):
            return f": write '{kind.name} -{option}={known}'"
    return did_you_mean(name, names)


def _takes(kind: HasDefault, mcpu: str) -> bool:
    try:
        kind.default(mcpu)
    except TargetError:
        return False
    return True


def processor_hint(mcpu: str, names: Iterable[str]) -> str:
    """A hint for an unknown processor: its name here, or a similar one of the `names`."""
    return f", which is -mcpu={PROCESSORS[mcpu]} here" if mcpu in PROCESSORS else did_you_mean(mcpu, names)


def option_hint(name: str, value: str, known: Iterable[str]) -> str:
    """A hint for an unknown option: what other compilers mean by it, or a similar one of the `known`."""
    if name == "num-cores":
        return f": write -threads={value or 'N'}"
    if name == "mtriple":
        arm = value.startswith(("aarch64", "arm"))
        return ": write the kind arm or armv7 instead, such as 'arm -mcpu=cortex-a72'" if arm else ": leave it out, the kind says which machine it is"
    return ": leave it out, it has no meaning here" if name in IGNORED else did_you_mean(name, known, "-")
