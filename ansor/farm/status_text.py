"""The state of a farm as lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from ansor.farm.status import DeviceStatus, FarmStatus
from ansor.support.text import counted

WIDTH = 80
KEY, DEVICE, STATE, NUMBER = 14, 30, 10, 8


def status_lines(found: FarmStatus) -> Sequence[str]:
    """A table of devices by key. Below each device that is suspended or failed a job, a line says why."""
    if not found.devices:
        return ["no devices: start some with `ansor farm worker`"]
    lines = [_row("key", "device", "state", "trials", "failed", "per min")]
    for one in sorted(found.devices, key=lambda one: (one.key, one.device)):
        lines += _lines(one)
    lines.append(f"{counted(len(found.devices), 'device')}, {found.waiting} waiting")
    if found.dashboard:
        lines.append(f"dashboard: {found.dashboard}")
    return lines


def _lines(one: DeviceStatus) -> Sequence[str]:
    state = "suspended" if one.suspended else "busy" if one.busy else "free"
    said = f"suspended: {one.suspended}" if one.suspended else f"last failure: {one.done.last_failure}" if one.done.last_failure else ""
    row = _row(one.key, one.device, state, one.done.jobs, one.done.failures, one.done.last_minute)
    return [row, *wrap(said, WIDTH, initial_indent="  ", subsequent_indent="  ")]


def _row(key: str, device: str, state: str, *numbers: object) -> str:
    return f"{_short(key, KEY - 1):<{KEY}}{_short(device, DEVICE - 1):<{DEVICE}}{state:<{STATE}}{''.join(f'{number:>{NUMBER}}' for number in numbers)}"


def _short(text: str, width: int) -> str:
    """The text, cut if it is wider than this."""
    return text if len(text) <= width else f"{text[: width - 3]}..."
