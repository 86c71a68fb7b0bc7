"""Which kinds of devices there are, and opening one by its text: `local`, `qemu-aarch64`, `agent://10.0.0.7:9190`.

A kind is a `DeviceKind` in the tuple `KINDS` of a module of `ansor.measure.devices`, or of another package through the entry point group `ansor.devices`
(a name and a DeviceKind). The text of a device begins with the name of its kind, alone or with a colon after it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points

from ansor.errors import DeviceError
from ansor.measure import devices
from ansor.measure.device import Device
from ansor.measure.turns import Say
from ansor.support.notices import warn
from ansor.targets.base import Target

GROUP = "ansor.devices"


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device.

    open: the device that a text stands for, for programs of a target; it raises DeviceError for a text it cannot read. `Say` gets what a person should know.
    missing: what this machine lacks to use it, in one sentence with the cure; '' for nothing.
    """

    name: str
    help: str
    open: Callable[[str, Target, Say], Device]
    missing: Callable[[], str] = lambda: ""


def open_device(text: str | Device, target: Target, say: Say = warn) -> Device:
    """The device of that text; a device is given back as it is. Raises DeviceError for an unknown kind, and for one that cannot be used here."""
    if not isinstance(text, str):
        return text
    kind = find_kind(text)
    lacking = kind.missing()
    if lacking:
        raise DeviceError(f"asked to measure on {text}: {lacking}")
    return kind.open(text, target, say)


def open_devices(texts: Sequence[str | Device] | str | Device | None, target: Target, say: Say = warn) -> tuple[Device, ...]:
    """Several devices, the target's own by default. Raises DeviceError for different models: their costs do not compare."""
    given = [target.device] if texts is None else list(texts) if isinstance(texts, Sequence) and not isinstance(texts, str) else [texts]
    if not given:
        raise DeviceError("asked to measure on no device: name one (`ansor devices` lists the kinds), or leave devices out")
    opened = tuple(open_device(one, target, say) for one in given)
    names = [one.name for one in opened]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise DeviceError(f"asked to measure on {twice} twice: name each device once")
    models = list(dict.fromkeys(f"{one.model} ({one.unit})" for one in opened))
    if len(models) > 1:
        raise DeviceError(f"asked to measure on {' and '.join(models)} together: their costs do not compare; use devices of one model")
    return opened


def find_kind(text: str) -> DeviceKind:
    """The kind of a device's text. Raises DeviceError for an unknown one."""
    name = text.partition(":")[0]
    known = {kind.name: kind for kind in device_kinds()}
    if name not in known:
        raise DeviceError(f"asked for device {text!r}; the kinds of devices are {', '.join(known)}")
    return known[name]


@lru_cache
def device_kinds() -> tuple[DeviceKind, ...]:
    """All kinds, ours first. Raises DeviceError where two have one name."""
    modules = [importlib.import_module(f"{devices.__name__}.{one.name}") for one in pkgutil.iter_modules(devices.__path__)]
    found = [kind for module in modules for kind in getattr(module, "KINDS", ())]
    found += [point.load() for point in entry_points(group=GROUP)]
    names = [kind.name for kind in found]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise DeviceError(f"two kinds of devices are called {twice!r}: uninstall the package of one of them")
    return tuple(found)
