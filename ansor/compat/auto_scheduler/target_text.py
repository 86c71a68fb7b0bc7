"""Targets in TVM's syntax, `llvm -mcpu=skylake-avx512`: text with properties for its parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import ClassVar, Self, TypeAlias, cast

from ansor.compat.common.hardware import PROCESSOR_KINDS, kind_of_target
from ansor.compat.common.local_target import local_target, options_of
from ansor.compat.common.target_keys import keys as keys_of
from ansor.errors import TargetError
from ansor.support.json_values import Json

DEFAULT = "llvm"
OTHER_KINDS = ("cuda", "nvptx", "rocm", "opencl", "metal", "vulkan", "webgpu", "hexagon", "aocl", "aocl_sw_emu", "sdaccel", "stackvm", "ext_dev", "hybrid",
               "composite", "ccompiler", "example_target_hook", "vpi")  # fmt: skip
"""Kinds that TVM has, but that programs cannot be built for. They can be named and inspected."""

Attribute: TypeAlias = str | tuple[str, ...]


class Kind(str):
    """The kind of a target: a string with itself as `name`."""

    @property
    def name(self) -> str:
        return str(self)


class Target(str):
    """The text of a target. Inside a `with`, `tvm.build` builds for it.

    target: a text, or a dict such as `{"kind": "llvm", "mcpu": "skylake"}`. host: the target of the calling program; only kept for logs.

    Targets of other devices can be created and inspected; building for one raises TargetError. Creating a target raises TargetError for a kind that TVM
    does not have, or for an option that processors do not have.
    """

    _entered: ClassVar[list[Target]] = []
    host: Target | None

    def __new__(cls, target: str | Mapping[str, object], host: str | Mapping[str, object] | None = None) -> Self:
        fields = dict(target) if isinstance(target, Mapping) else {}
        inner = cast("str | Mapping[str, object] | None", fields.pop("host", None) or getattr(target, "host", None))  # checked as a target below
        host = host or inner
        text = _text(fields) if isinstance(target, Mapping) else str(target)
        kind = kind_of_target(text)
        if kind in PROCESSOR_KINDS:
            local_target(text)
        elif kind not in OTHER_KINDS:
            raise TargetError(f"asked for the target {text!r:.200}; only CPUs are supported: give llvm")
        return cast(Self, with_keys(Target.unchecked(text, host if host is None else Target(host))))

    @classmethod
    def unchecked(cls, text: str, host: Target | None = None) -> Self:
        """A target from any text, such as a log's. Building for it may raise TargetError."""
        made = super().__new__(cls, text)
        made.host = host
        return made

    @property
    def kind(self) -> Kind:
        """The kind, such as `llvm`."""
        return Kind(kind_of_target(self))

    @property
    def attrs(self) -> Mapping[str, Attribute]:
        """The options by name. `mattr` and `libs` are tuples."""
        return {name: tuple(filter(None, value.split(","))) if name in ("mattr", "libs") else value for name, value in options_of(self) if name != "keys"}

    @property
    def keys(self) -> tuple[str, ...]:
        """The device families it belongs to."""
        return keys_of(str(self))

    @property
    def mcpu(self) -> str:
        """The processor; "native" for that of this machine. Raises TargetError for other devices."""
        return local_target(self).mcpu

    @property
    def model(self) -> str:
        """The option `model`, or "unknown"."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def libs(self) -> tuple[str, ...]:
        """The libraries it names. They are not used."""
        return tuple(self.attrs.get("libs", ()))

    @property
    def mattr(self) -> tuple[str, ...]:
        """The CPU features it names. They are ignored: features are read from the processor."""
        return tuple(self.attrs.get("mattr", ()))

    @property
    def device_name(self) -> str:
        """The option `device`, or "" if not set."""
        return str(self.attrs.get("device", ""))

    def export(self) -> dict[str, Json]:
        """Its parts as a dict, which `Target` accepts."""
        parts: dict[str, Json] = {"kind": str(self.kind), "tag": "", "keys": list(self.keys)}
        parts.update({name: list(value) if isinstance(value, tuple) else value for name, value in self.attrs.items()})
        return parts if self.host is None else {**parts, "host": self.host.export()}

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with`. Outside of any: None, or the target `llvm` if None is not allowed."""
        if Target._entered:
            return Target._entered[-1]
        return None if allow_none else Target(DEFAULT)

    def __enter__(self) -> Self:
        from ansor.templates.dispatch import on_target

        Target._entered.append(self)
        asking: AbstractContextManager[str] = on_target(str(self))
        asking.__enter__()
        self._asking = [*getattr(self, "_asking", []), asking]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._asking.pop().__exit__(kind, error, trace)
        Target._entered.pop()

    def __getstate__(self) -> dict[str, object]:
        return {"host": self.host}


def of_any(target: object, host: str | None = None) -> Target:
    """The text of a target of any kind, unchecked. `host` applies if it has none itself."""
    own = target.host if isinstance(target, Target) else None
    return Target.unchecked(str(target), own or (Target.unchecked(str(host)) if host else None))


def with_keys(target: Target) -> Target:
    """A processor's target with its keys, as TVM prints it: `llvm -mcpu=skylake` -> `llvm -keys=cpu -mcpu=skylake`. Other targets stay as they are."""
    kind, _, options = target.partition(" ")
    if kind not in PROCESSOR_KINDS or any(name == "keys" for name, _ in options_of(target)):
        return target
    return Target.unchecked(" ".join(filter(None, (kind, f"-keys={','.join(target.keys)}", options.strip()))), target.host)


def target_of(given: str | None) -> Target:
    """The given target, or the one of the enclosing `with`, or `llvm`."""
    return Target(given) if given is not None else Target._entered[-1] if Target._entered else Target(DEFAULT)


def _text(fields: Mapping[str, object]) -> str:
    """`{"kind": "llvm", "mcpu": "skylake"}` -> `llvm -mcpu=skylake`."""
    if not isinstance(fields.get("kind"), str):
        raise TargetError(f"asked for the target {json.dumps(fields, default=str):.200}; name its kind: {{'kind': 'llvm'}}")
    given = {name: value for name, value in fields.items() if name not in ("kind", "tag")}
    values = {name: ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value) for name, value in given.items()}
    return " ".join([str(fields["kind"]), *(f"-{name}={value}" for name, value in values.items() if value)])
