"""Describes a candidate to the trial program it is linked with: its arguments, orders and transforms as constant tables (`manifest.h`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np

from ansor.codegen.source import Argument, Combined, CSource, Grouped, Joined, Pack, Transform

HEADER = Path(__file__).with_name("manifest.h")


MANIFEST = "ansor_trial_manifest"
"""The symbol of a candidate's description."""


@cache
def _limits(small: bool) -> dict[str, int]:
    """The most arguments, dimensions, loops of a pack, and inner elements of a transform that fit in the tables. `small`: for boards."""
    found = re.findall(r"TRIAL_(\w+) = (\d+)", HEADER.read_text())
    half = len(found) // 2
    return {name: int(number) for name, number in (found[:half] if small else found[half:])}


def program_text(source: CSource, *, small: bool = False) -> str:
    """The candidate and its description, as one C text. One that does not fit in the tables fails to compile, and says why. `small`: tables for boards."""
    tables = [_tables(number, argument) for number, argument in enumerate(source.arguments)]
    rows = [_row(number, argument) for number, argument in enumerate(source.arguments)]
    numbers = f"{len(rows)}, {source.threads}, {source.workspace_bytes}ull"
    whole = [
        f"static const trial_argument trial_arguments[] = {{\n  {''.join(rows) or '{0}'}}};",
        f"const trial_manifest {MANIFEST} = {{(trial_entry){source.entry}, {numbers}, trial_arguments}};",
    ]
    return "\n".join([source.text, HEADER.read_text(), *_refusals(source, small), *tables, *whole, ""])


def _refusals(source: CSource, small: bool) -> list[str]:
    found = {"ARGUMENTS": len(source.arguments), "DIMENSIONS": 0, "LOOPS": 0, "INNER": 0}
    for argument in source.arguments:
        transform = _matrix_of(argument)
        dimensions = len(argument.shape) + (transform is not None)
        loops = len(argument.pack.extents) if argument.pack else 0
        inner = len(transform.matrix[0]) if transform else 0
        for name, number in (("DIMENSIONS", dimensions), ("LOOPS", loops), ("INNER", inner)):
            found[name] = max(found[name], number)
    room = _limits(small)
    return [
        f"#error a trial program supports {room[name]} {name.lower()} of an argument, and {source.entry} has {number}: measure it on the device local"
        for name, number in found.items() if number > room[name]
    ]  # fmt: skip


def _tables(number: int, argument: Argument) -> str:
    parts = [_numbers(f"trial_shape_{number}", "long long", argument.shape)]
    if argument.pack is not None:
        parts += _pack(number, argument.pack)
    if isinstance(argument.transform, Joined):
        one = argument.transform
        parts.append(f"static const trial_joined trial_joined_{number} = {{{one.across}, {one.lanes}, {one.bits}, {one.along}, {one.words}}};")
    elif isinstance(argument.transform, Grouped):
        parts.append(f"#error a trial program cannot lay out constants in groups such as {argument.name}: measure it on the device local")
    elif isinstance(argument.transform, Combined):
        parts += _combined(number, argument.transform)
    elif argument.transform is not None:
        parts += _transform(number, argument.transform)
    return "\n".join(parts)


def _matrix_of(argument: Argument) -> Transform | None:
    return argument.transform if isinstance(argument.transform, Transform) else None


def _pack(number: int, pack: Pack) -> list[str]:
    name = f"trial_pack_{number}"
    starts = f"{name}_starts" if pack.starts else "0"
    return [
        _numbers(f"{name}_extents", "long long", pack.extents),
        _numbers(f"{name}_strides", "long long", [stride for row in pack.strides for stride in row]),
        *([_numbers(starts, "long long", pack.starts)] if pack.starts else []),
        f"static const trial_pack {name} = {{{len(pack.extents)}, {name}_extents, {name}_strides, {starts}}};",
    ]


def _transform(number: int, transform: Transform) -> list[str]:
    name, rows, inner = f"trial_transform_{number}", len(transform.matrix), len(transform.matrix[0])
    return [
        _numbers(f"{name}_axes", "int", transform.axes),
        _numbers(f"{name}_rest", "int", transform.rest),
        f"static const double {name}_matrix[] = {{{', '.join(float(one).hex() for row in transform.matrix for one in row)}}};",
        f"static const trial_transform {name} = "
        f"{{{rows}, {inner}, {len(transform.axes)}, {len(transform.rest)}, {name}_axes, {name}_rest, {name}_matrix}};",
    ]


def _combined(number: int, combined: Combined) -> list[str]:
    name = f"trial_combined_{number}"
    return [
        _numbers(f"{name}_factors", "long long", [factor for row in combined.factors for factor in row]),
        f"static const trial_combined {name} = {{{combined.across}, {combined.lanes}, {len(combined.factors)}, {combined.chunk}, {name}_factors}};",
    ]


def _row(number: int, argument: Argument) -> str:
    dtype = np.dtype(argument.physical_dtype)
    pack = f"&trial_pack_{number}" if argument.pack is not None else "0"
    transform = f"&trial_transform_{number}" if _matrix_of(argument) else "0"
    joined = f", &trial_joined_{number}" if isinstance(argument.transform, Joined) else ""
    joined = f", 0, &trial_combined_{number}" if isinstance(argument.transform, Combined) else joined
    return (
        f"{{{_text(argument.name)}, '{argument.role[0]}', '{dtype.kind}', {dtype.itemsize}, {len(argument.shape)}, trial_shape_{number}, "
        f"{argument.physical_size}ull, {pack}, {transform}{joined}}},\n  "
    )


def _numbers(name: str, kind: str, numbers: Iterable[int]) -> str:
    return f"static const {kind} {name}[] = {{{', '.join(map(str, numbers)) or '0'}}};"


def _text(name: str) -> str:
    """A name as a C string that is valid inside a JSON string."""
    escaped = json.dumps(name)[1:-1].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
