"""`ansor targets` and `ansor devices`: the targets that programs can be generated for, and the devices that can measure them."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from ansor.commands.as_json import say_json
from ansor.commands.common import make_console
from ansor.commands.findings import Finding, told
from ansor.errors import DeviceError, TargetError
from ansor.measure.device_kinds import device_kinds, open_devices
from ansor.measure.device_kinds import find_kind as find_device_kind
from ansor.measure.wire.opening import open_wire, wire_kind
from ansor.targets.base import Kind, Target, find_kind, kind_names


def run_targets(given: argparse.Namespace) -> int:
    """Print a row for each kind of target or, for a named kind, a row for each of its options. Raises TargetError for an unknown kind."""
    console = make_console()
    if given.kind:
        return _say_options(given, console, find_kind(given.kind))
    if given.json:
        say_json(console, {"targets": [_described(name, find_kind(name)) for name in kind_names()]})
        return 0
    table = _table("target", "costs in", "measured on", "options")
    for name in kind_names():
        try:
            kind = find_kind(name)
        except TargetError as error:  # another package's kind that cannot be loaded: the others are still listed
            table.add_row(name, "-", "-", str(error))
            continue
        unit, device = _counted_on(kind)
        table.add_row(name, unit, device, ", ".join(f"-{option.name}" for option in kind.options))
    console.print(table)
    console.print("a target is a kind and its options, such as 'cpu -threads=1'; `ansor targets KIND` explains them", soft_wrap=True)
    console.print("`ansor doctor --target ...` shows what is needed and what is installed", soft_wrap=True)
    return 0


def _counted_on(kind: Kind) -> tuple[str, str]:
    """The unit of costs, and the device that measures them."""
    return ("as the board counts", "the board's own") if callable(kind.unit) else (str(kind.unit), str(kind.device))


def _described(name: str, kind: Kind) -> dict[str, object]:
    unit, device = _counted_on(kind)
    return {"name": name, "unit": unit, "device": device, "options": [option.name for option in kind.options]}


def _say_options(given: argparse.Namespace, console: Console, kind: Kind) -> int:
    table = _table("option", "meaning", "default")
    target = kind.default(kind.mcpu)
    rows = []
    for option in kind.options:
        value = option.of(target)
        rows.append((option.name, option.help, ", ".join(sorted(value)) if isinstance(value, frozenset) else option.text(value)))
        table.add_row(f"-{option.name}", *rows[-1][1:])
    if given.json:
        options = [dict(zip(("name", "help", "default"), row, strict=True)) for row in rows]
        say_json(console, {"target": given.kind, "default": str(target), "options": options})
        return 0
    console.print(table)
    console.print(f"the default target is '{target}'", soft_wrap=True)
    return 0


def run_devices(given: argparse.Namespace) -> int:
    """Print a row for each kind of device, and what this machine lacks to use it."""
    console = make_console()
    if given.json:
        say_json(console, {"devices": [{"name": kind.name, "help": kind.help, "missing": kind.missing()} for kind in device_kinds()]})
        return 0
    table = _table("device", "what it is", "ready")
    for kind in device_kinds():
        table.add_row(kind.name, kind.help, kind.missing() or "yes")
    console.print(table)
    return 0


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def check_device(target: Target) -> Finding:
    """Check whether a target's own device can be used here, by opening it once."""
    kind = find_device_kind(target.device)
    what = f"{target.device} ({kind.help}): "
    lacking = kind.missing() or _why_closed(target) or _why_silent(target.device)
    return told("device", lacking, what, fix="`ansor devices` says what each device needs") if lacking else Finding("device", f"{what}ready")


def _why_closed(target: Target) -> str:
    try:
        (device,) = open_devices(None, target)
        device.close()
    except DeviceError as error:
        return str(error)
    return ""


def _why_silent(text: str) -> str:
    """Why no board answers behind a wire; '' if one does, or for other devices."""
    try:
        if wire_kind(text) is not None:
            open_wire(text).close()
    except DeviceError as error:
        return str(error)
    return ""
