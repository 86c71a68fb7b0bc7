"""The state of a farm as lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.farm.status import DeviceStatus, FarmStatus
from ansor.support.text import clip, counted

WIDTH = 80


def status_lines(found: FarmStatus) -> Sequence[str]:
    """A table by key; below each device that has something to say, what that is."""
    if not found.devices:
        return ["no devices: start some with `ansor farm worker`"]
    lines = [f"{'key':<14}{'device':<30}{'state':<9}{'trials':>8}{'failed':>8}{'per min':>8}"]
    for one in sorted(found.devices, key=lambda one: (one.key, one.device)):
        lines += _lines(one)
    lines.append(f"{counted(len(found.devices), 'device')}, {found.waiting} waiting")
    if found.dashboard:
        lines.append(f"dashboard: {found.dashboard}")
    return lines


def _lines(one: DeviceStatus) -> Sequence[str]:
    state = "aside" if one.quarantined else "busy" if one.busy else "free"
    row = f"{clip(one.key, 13):<14}{clip(one.device, 29):<30}{state:<9}{one.done.jobs:>8}{one.done.failures:>8}{one.done.last_minute:>8}"
    said = f"suspended: {one.quarantined}" if one.quarantined else f"last failure: {one.done.last_failure}" if one.done.last_failure else ""
    return [row, f"  {clip(' '.join(said.split()), WIDTH - 2)}"] if said else [row]
