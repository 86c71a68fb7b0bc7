"""Tasks of several targets in one run: groups them by target, and finds the devices of each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ansor.errors import ArgumentError, DeviceError
from ansor.measure.device import Device
from ansor.measure.device_kinds import find_kind
from ansor.measure.measurer import Measurer
from ansor.targets.base import Target, parse_target
from ansor.tasks.task import SearchTask

Devices: TypeAlias = "Sequence[str | Device] | str | Device"
"""One device or several of one model, as texts or objects."""

DevicesByTarget: TypeAlias = "Mapping[str, Devices | None] | Mapping[Target, Devices | None]"
"""The devices of each target; None for the target's own."""


@dataclass(frozen=True)
class TargetTasks:
    """The tasks for one target. target: that of the first task; name: the target's text in messages; places: the numbers of the tasks in the run."""

    target: Target
    name: str
    places: tuple[int, ...]


def name_of(target: Target) -> str:
    """The text of a target without the limit on workspaces: each task of an int8 network has its own, and they are measured together."""
    return re.sub(r" -workspace=\S+", "", str(target))


def tasks_by_target(tasks: Sequence[SearchTask]) -> list[TargetTasks]:
    """Tasks grouped by target; the groups are in the order of their first tasks."""
    places: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        places.setdefault(name_of(task.target), []).append(place)
    return [TargetTasks(tasks[of_target[0]].target, name, tuple(of_target)) for name, of_target in places.items()]


def devices_by_target(names: Sequence[str], devices: Devices | DevicesByTarget | None) -> list[Devices | None]:
    """The devices of each target, by its name; None for its own. Raises ArgumentError if it is not clear whose devices are meant."""
    if devices is None:
        return [None] * len(names)
    if not isinstance(devices, Mapping):
        if len(names) == 1:
            return [devices]
        raise ArgumentError(f"asked to measure for {' and '.join(names)} with devices={devices!r:.200}; say whose they are: devices={_example(names)}")
    given = _by_name(devices)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ArgumentError(f"asked to measure for {' and '.join(names)} with devices for {unknown[0]}, which has no tasks; leave it out, or add tasks for it")
    missing = [name for name in names if name not in given]
    if missing:
        raise ArgumentError(f"asked to measure for {' and '.join(names)} without devices for {missing[0]}; name some, or give None for its own")
    return [given[name] for name in names]


def _by_name(devices: DevicesByTarget) -> dict[str, Devices | None]:
    found: dict[str, Devices | None] = {}
    for key, of_target in devices.items():
        name = name_of(parse_target(key))
        if name in found:
            raise ArgumentError(f"asked for devices of {name} twice; name each target once")
        found[name] = of_target
    return found


def _example(names: Sequence[str]) -> str:
    return "{" + ", ".join(f"{name!r}: [...]" for name in names) + "}"


def check_shared(groups: Sequence[TargetTasks], devices: Sequence[Devices | None]) -> None:
    """Raise ArgumentError if two targets would use the same device, and it serves only one user at a time."""
    seen: dict[object, str] = {}
    for group, given in zip(groups, devices, strict=True):
        of_target = group.target.device if given is None else given
        for device in [of_target] if isinstance(of_target, str) or not isinstance(of_target, Sequence) else of_target:
            other = seen.setdefault(device if isinstance(device, str) else id(device), group.name)
            if other != group.name and (not isinstance(device, str) or find_kind(device).exclusive):
                what = device if isinstance(device, str) else device.name
                raise ArgumentError(f"asked to measure on {what} for {other} and for {group.name}; a board runs programs of one target: name one for each")


def check_apart(measurers: Sequence[Measurer]) -> None:
    """Raise DeviceError for a device whose measurements would be disturbed by work for the other targets."""
    for measurer in measurers:
        alone = next((device for device in measurer.devices if device.alone), None)
        if alone is not None and not measurer.ahead:
            raise DeviceError(
                f"asked to tune for {_names(measurers)} in one run, but building programs would disturb what {alone.name} measures; "
                f"tune for {name_of(measurer.target)} in a run of its own"
            )


def _names(measurers: Sequence[Measurer]) -> str:
    return " and ".join(name_of(one.target) for one in measurers)
