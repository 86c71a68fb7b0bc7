"""Finds the kinds of devices and opens a device by its text: `local`, `qemu-aarch64`, `agent://10.0.0.7:9190`.

A kind is a `DeviceKind` in the tuple `KINDS` of a module in `ansor.measure.devices`. Other packages provide kinds through the entry point group
`ansor.devices` (a name and a DeviceKind). The text of a device begins with the name of its kind, alone or with a colon after it; a path in /dev is a serial
line.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ansor.codegen.building import Toolchain
from ansor.errors import DeviceError
from ansor.measure import devices
from ansor.measure.device import Device
from ansor.measure.turns import Say
from ansor.support.notices import warn
from ansor.support.text import did_you_mean
from ansor.targets.base import Target
from ansor.targets.unit import Unit

GROUP = "ansor.devices"


@dataclass(frozen=True)
class DeviceKind:
    """A kind of device.

    open: opens the device of a text, for programs of a target; raises DeviceError for a text it cannot read. `Say` gets messages for the user.
    missing: what this machine lacks to use it and how to get it, in one sentence; '' for nothing. several: opens all devices of a text that names several;
    they are closed together. check: raises DeviceError for a text that cannot be read, and opens nothing. exclusive: a device serves one user at a time.
    """

    name: str
    help: str
    open: Callable[[str, Target, Say], Device]
    missing: Callable[[], str] = lambda: ""
    several: Callable[[str, Target, Say], Sequence[Device]] | None = None
    check: Callable[[str], object] = lambda text: None
    exclusive: bool = False


def open_device(text: str | Device, target: Target, say: Say = warn) -> Device:
    """Open the device of that text; a device is returned unchanged. Raises DeviceError for an unknown kind or one that cannot be used here."""
    return usable_kind(text).open(text, target, say) if isinstance(text, str) else text


def usable_kind(text: str) -> DeviceKind:
    """The kind of a device's text. Raises DeviceError for an unknown one, a text that cannot be read, or if this machine lacks something it needs."""
    kind = find_kind(text)
    kind.check(text)
    lacking = kind.missing()
    if lacking:
        raise DeviceError(f"asked to measure on {text}: {lacking}")
    return kind


def open_devices(texts: Sequence[str | Device] | str | Device | None, target: Target, say: Say = warn) -> tuple[Device, ...]:
    """Open several devices, by default the target's own. Raises DeviceError for different models, whose costs are not comparable, and if the target's own has
    another unit than the target."""
    given = _given(texts, target)
    opened: list[Device] = []
    try:
        for one in given:
            found = _opened(one, target, say)
            opened += found
            for device in found:
                _check_attributes(device)
                if texts is None:
                    _check_unit(device, target)
        _check_once([one.name for one in opened])
        models = list(dict.fromkeys(f"{one.model} ({one.unit})" for one in opened))
        if len(models) > 1:
            raise DeviceError(f"asked to measure on {' and '.join(models)} together: their costs are not comparable; use devices of one model")
    except BaseException:
        for device in opened:
            if not any(device is one for one in given) and callable(getattr(device, "close", None)):  # the caller closes the devices it passed in
                device.close()
        raise
    return tuple(opened)


def check_devices(texts: Sequence[str | Device] | str | Device | None, target: Target) -> None:
    """Raises DeviceError for what `open_devices` refuses before it opens a device."""
    for one in _given(texts, target):
        if isinstance(one, str):
            usable_kind(one)
        else:
            _check_attributes(one)


def _given(texts: Sequence[str | Device] | str | Device | None, target: Target) -> list[str | Device]:
    """The devices as a list. Raises DeviceError for none, and for a text that is given twice: many devices accept one user at a time."""
    given: list[str | Device] = [target.device] if texts is None else list(texts) if isinstance(texts, Sequence) and not isinstance(texts, str) else [texts]
    if not given:
        raise DeviceError("asked to measure on no device: name one (`ansor devices` lists the kinds), or leave devices out")
    _check_once([one for one in given if isinstance(one, str)])
    return given


def _opened(one: str | Device, target: Target, say: Say) -> Sequence[Device]:
    """The devices of a text, usually one."""
    if not isinstance(one, str):
        return [one]
    kind = usable_kind(one)
    return [kind.open(one, target, say)] if kind.several is None else kind.several(one, target, say)


def _check_once(names: Sequence[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise DeviceError(f"asked to measure on {twice} twice: name each device once")


def _check_attributes(device: object) -> None:
    """Raises DeviceError for an object with a missing or wrong attribute of `Device`."""
    what = f"asked to measure on {device!r:.200}, whose"
    for name in ("name", "model", "form"):
        if not isinstance(getattr(device, name, None), str) or not getattr(device, name):
            raise DeviceError(f"{what} {name} is {getattr(device, name, 'missing')!r}, not a string; give a Device of ansor.measure.device, or its text")
    if not isinstance(getattr(device, "unit", None), Unit):
        raise DeviceError(f"{what} unit is {getattr(device, 'unit', 'missing')!r}, not a Unit; use one of ansor.targets.unit, such as ticks(1e6)")
    if not isinstance(getattr(device, "alone", None), bool):
        raise DeviceError(f"{what} alone is {getattr(device, 'alone', 'missing')!r}, not True or False: whether building disturbs its measurements")
    lacking = next((name for name in ("run", "close") if not callable(getattr(device, name, None))), "")
    if lacking:
        raise DeviceError(f"{what} method {lacking} is missing; ansor.measure.device.Device documents it")


def _check_unit(device: Device, target: Target) -> None:
    """Raises DeviceError if a target's own device counts something else than its kind says: programs would be chosen for the wrong costs."""
    if device.unit.name != target.unit.name:
        raise DeviceError(
            f"asked to measure programs for {target} on its own device {device.name}, which counts {device.unit}, but the kind {target.kind} says "
            f"{target.unit}; give the Kind the unit of its device (docs/backends.md), or name other devices"
        )


def check_forms(devices: Sequence[Device], toolchain: Toolchain, target: Target) -> None:
    """Raises DeviceError for a device that cannot run anything the toolchain builds."""
    made = toolchain.forms()
    other = next((one for one in devices if one.form not in made), None)
    if other is not None:
        raise DeviceError(
            f"asked to measure programs for {target} on {other.name}, which runs the form {other.form!r}; {toolchain.version} makes {' and '.join(made)}: "
            "choose another device (`ansor devices` lists the kinds), or fix the target's toolchain"
        )


def find_kind(text: str) -> DeviceKind:
    """The kind of a device's text. Raises DeviceError for an unknown one."""
    name = "serial" if text.startswith("/dev/") else text.partition(":")[0]
    known = {kind.name: kind for kind in device_kinds()}
    if name == "process":
        raise DeviceError(f"asked for device {text!r}, which is a test wire without a board (`ansor micro probe {text}`): it cannot run a board's programs")
    if name not in known:
        raise DeviceError(f"asked for device {text!r}{did_you_mean(name, list(known))}; the kinds of devices are {', '.join(known)}")
    return known[name]


def name_alone(text: str) -> None:
    """The `check` of a kind whose only text is its name."""
    name, colon, _ = text.partition(":")
    if colon:
        raise DeviceError(f"asked for device {text!r}; write {name}, with nothing after it")


@lru_cache
def device_kinds() -> tuple[DeviceKind, ...]:
    """All kinds, ours first. Raises DeviceError if two share a name."""
    from importlib.metadata import entry_points

    modules = [importlib.import_module(f"{devices.__name__}.{one.name}") for one in pkgutil.iter_modules(devices.__path__)]
    found = [kind for module in modules for kind in getattr(module, "KINDS", ())]
    found += [point.load() for point in entry_points(group=GROUP)]
    names = [kind.name for kind in found]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise DeviceError(f"two kinds of devices are called {twice!r}: uninstall the package of one of them")
    return tuple(found)
