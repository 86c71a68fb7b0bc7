"""Tells whether a record fits a target, compiler and processor. Records name all three in one text, which is compared in parts."""

from __future__ import annotations

from ansor.codegen.toolchain import processor_name
from ansor.measure.machine_identity import compiler_identity, processor_identity
from ansor.targets.base import Target


def record_target(target: Target) -> str:
    """The target as records name it, with the compiler and, for `native`, the processor's identity: times depend on both."""
    compiler = compiler_identity(target.toolchain().version)
    return f"{target} ({processor_identity()}, {compiler})" if target.mcpu == "native" else f"{target} ({compiler})"


def options_text(recorded: str) -> str:
    """A record's target without the processor and compiler, which follow in parentheses."""
    return recorded.partition(" (")[0]


def is_for(recorded: str, target: Target) -> bool:
    """Whether a record was made for the same target options, on any machine."""
    return options_text(recorded) == str(target)


def difference(recorded: str, target: Target) -> str:
    """What differs between the machine of a record for the same options and this one, in a few words."""
    inside = recorded.partition(" (")[2].removesuffix(")")
    if not inside:
        return "made on an unnamed machine"
    if "logged: " in inside:
        return f"times from a log ({inside[inside.index('logged: ') + len('logged: ') :]})"
    processor, _, compiler = inside.rpartition(", ") if target.mcpu == "native" else ("", "", inside)
    made, here = compiler_identity(compiler), compiler_identity(target.toolchain().version)
    words = [_other_processor(processor)] if target.mcpu == "native" and processor not in (processor_identity(), processor_name()) else []
    words += [f"with {made}, here {here}"] if made != here else []
    return f"made {', and '.join(words)}" if words else f"made on another machine ({inside})"


def _other_processor(processor: str) -> str:
    """`on another processor: X, here Y`, or only the part that differs."""
    made, here = _parts(processor), _parts(processor_identity())
    if not made["features"] and not made["caches"]:  # an older file: the brand text
        return f"on another processor: {processor or 'not named'}, here {processor_name()}"
    if made["kind"] != here["kind"]:
        return f"on another processor: {made['kind']}, here {here['kind']}"
    if made["features"] != here["features"]:
        return f"on a processor of this model ({here['kind']}) with different instructions"
    return f"on a processor with different caches: {made['caches'] or 'not named'}, here {here['caches'] or 'not named'}"


def _parts(processor: str) -> dict[str, str]:
    """The kind, features and caches of `processor_identity`."""
    kind, _, caches = processor.partition(", caches ")
    kind, _, features = kind.partition(", features ")
    return {"kind": kind, "features": features, "caches": caches}


def is_of(recorded: str, target: Target) -> bool:
    """Whether a record with that target text is valid for a target on this machine.

    Older files have the processor's brand text and the compiler's full version: for those, the brand and major.minor must match.
    """
    if recorded == record_target(target):
        return True
    start = f"{target} ({processor_name()}, " if target.mcpu == "native" else f"{target} ("
    if not recorded.startswith(start) or not recorded.endswith(")"):
        return False
    compiler = recorded[len(start) : -1]
    return not compiler.startswith("logged: ") and compiler_identity(compiler) == compiler_identity(target.toolchain().version)
