"""Which records are of a target: made for it, by this compiler, on such a processor. Records name all three in one text, which is compared in parts."""

from __future__ import annotations

from ansor.codegen.toolchain import find_compiler, processor_name
from ansor.measure.machine_identity import compiler_identity, processor_identity
from ansor.targets.base import Target


def record_target(target: Target) -> str:
    """The target as records name it: with what the processor is where it says `native`, and with the compiler, because times depend on both."""
    compiler = compiler_identity(find_compiler(target.compiler).version)
    return f"{target} ({processor_identity()}, {compiler})" if target.mcpu == "native" else f"{target} ({compiler})"


def options_text(recorded: str) -> str:
    """A record's target without the processor and the compiler, which stand behind it in parentheses."""
    return recorded.partition(" (")[0]


def is_for(recorded: str, target: Target) -> bool:
    """Whether a record was made for the same target options, on whatever machine."""
    return options_text(recorded) == str(target)


def is_of(recorded: str, target: Target) -> bool:
    """Whether a record of that target text holds for a target on this machine.

    Older files name the processor by its brand text, and all of the compiler's version: of those the brand has to be the same, and major.minor.
    """
    if recorded == record_target(target):
        return True
    start = f"{target} ({processor_name()}, " if target.mcpu == "native" else f"{target} ("
    if not recorded.startswith(start) or not recorded.endswith(")"):
        return False
    compiler = recorded[len(start) : -1]
    return not compiler.startswith("logged: ") and compiler_identity(compiler) == compiler_identity(find_compiler(target.compiler).version)
