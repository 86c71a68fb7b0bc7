"""Translates a target's text in TVM's terms: `llvm -keys=cpu -mcpu=core-avx2`."""

from __future__ import annotations

import json
import shlex

from ansor.compat.common.hardware import PROCESSOR_KINDS, HardwareParams, kind_of_target
from ansor.errors import TargetError
from ansor.targets.architecture import architecture_here, architecture_of
from ansor.targets.base import Target, parse_target
from ansor.targets.cpu import OPTIONS
from ansor.targets.other_names import IGNORED, PROCESSORS

MEANINGLESS = (*IGNORED, "mtriple", "num-cores", "mattr", "host", "interface-api", "unpacked-api", "workspace-byte-alignment", "constants-byte-alignment")
"""TVM options that are ignored: features are read from the processor."""


ARM_TRIPLES = {"aarch64": "arm", "arm64": "arm", "armv8": "arm", "armv8l": "armv7", "armv7a": "armv7", "armv7l": "armv7", "arm": "armv7"}
"""First component of a triple -> kind of target."""


def local_target(text: str, hardware_params: HardwareParams | None = None) -> Target:
    """The target of a text, with as many threads as `hardware_params` has cores. Raises TargetError if it is not a processor."""
    kind, words = kind_of_target(text), options_of(text)
    if kind not in PROCESSOR_KINDS:
        raise TargetError(f"asked for programs for the target {text!r:.200}; only CPUs are supported: give llvm")
    known, kept = {option.name for option in OPTIONS}, ["cpu"]
    for name, value in words:
        if name in known and name not in MEANINGLESS:
            kept.append(f"-{name}={PROCESSORS.get(value, value) if name == 'mcpu' else value}")
        elif name not in MEANINGLESS:
            raise TargetError(f"asked for the target {text!r:.200} with the option -{name}; options are {', '.join(sorted({*known, *MEANINGLESS}))}")
    if hardware_params is not None and hardware_params.num_cores > 0 and not any(name == "threads" for name, _ in words):
        kept.append(f"-threads={hardware_params.num_cores}")
    return parse_target(" ".join(map(shlex.quote, kept)))


def measured_target(text: str) -> Target:
    """The target to measure on for a text: that of `local_target`, or an ARM board if the text names an ARM triple or processor and this machine is not ARM.

    Raises TargetError if it is not a processor, or an unknown one.
    """
    words = dict(options_of(text))
    triple = words.get("mtriple", "").partition("-")[0]
    arm = triple in ARM_TRIPLES if triple else architecture_of(words.get("mcpu", "native")) == "ARM"
    if not arm or architecture_here() == "ARM" or kind_of_target(text) not in PROCESSOR_KINDS:
        return local_target(text)
    kind, kept = ARM_TRIPLES.get(triple, "arm"), [f"-{name}={words[name]}" for name in ("mcpu", "threads") if words.get(name)]
    return parse_target(" ".join([kind, *map(shlex.quote, kept)]))


def function_target(text: str) -> Target:
    """The target of a function that is built and run here. Raises TargetError for an ARM board if this machine is not one."""
    there = measured_target(text)
    if not there.is_local:
        here = f"this machine is {architecture_here()}, and functions are built and run where the script runs"
        cure = f"leave -mtriple and -mcpu out, tune for it with autotvm.RPCRunner, or use ansor.auto_schedule(..., target='{there}')"
        raise TargetError(f"asked to build a function for {text!r:.200}, an ARM processor, but {here}: {cure}")
    return local_target(text)


def options_of(text: str) -> list[tuple[str, str]]:
    """Options and their values: `-name=value`, `-name value`, or a JSON object. Raises TargetError if it cannot be parsed."""
    if text.lstrip().startswith("{"):
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise TargetError(f"asked for the target {text!r:.200}, which is not JSON: {error}") from None
        return [(str(name), str(value)) for name, value in fields.items() if name not in ("kind", "tag")]
    try:
        rest = shlex.split(text)[1:]
    except ValueError as error:
        raise TargetError(f"asked for the target {text!r:.200}: {error}; close the quotes") from None
    found: list[tuple[str, str]] = []
    for word in rest:
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and not (found and found[-1][0] == "mattr" and not found[-1][1]):
            found.append((name, value if equals else ""))
        elif found and not found[-1][1]:
            found[-1] = (found[-1][0], word)
        else:
            raise TargetError(f"asked for the target {text!r:.200}; found {word!r}, which is not an option; write options such as -mcpu=native")
    return found
