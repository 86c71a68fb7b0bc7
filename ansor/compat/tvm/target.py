"""`tvm.target`: what programs are made for."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import ClassVar, Self

from ansor.auto_scheduler.local_target import local_target
from ansor.auto_scheduler.measured import kind_of_target
from ansor.autotvm.dispatch import on_target
from ansor.compat.tvm.missing import of_target as __getattr__  # noqa: F401  # what is not here raises

DEFAULT = "llvm"


class Kind(str):
    """A target's kind: a text, whose `name` is itself."""

    @property
    def name(self) -> str:
        return str(self)


class Target(str):
    """A target's text, such as `llvm -mcpu=skylake-avx512`. In a `with`, `tvm.build` makes programs for it.

    Raises TargetError when it is no processor, or has an option that there is not.
    """

    _entered: ClassVar[list[Target]] = []

    def __new__(cls, target: str, host: str | None = None) -> Self:
        local_target(target)
        made = super().__new__(cls, target)
        made.host = host
        return made

    host: str | None

    @property
    def kind(self) -> Kind:
        """`llvm`."""
        return Kind(kind_of_target(self))

    @property
    def keys(self) -> tuple[str, ...]:
        """The families that it belongs to."""
        return ("cpu",)

    @property
    def mcpu(self) -> str:
        """The processor; "native" for this machine's."""
        return local_target(self).mcpu

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with`. Without one None, or the target `llvm` if that is not allowed."""
        if Target._entered:
            return Target._entered[-1]
        return None if allow_none else Target(DEFAULT)

    def __enter__(self) -> Self:
        Target._entered.append(self)
        asking: AbstractContextManager[str] = on_target(str(self))
        asking.__enter__()
        self._asking = [*getattr(self, "_asking", []), asking]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._asking.pop().__exit__(kind, error, trace)
        Target._entered.pop()


def target_of(given: str | None) -> Target:
    """The target that is given, or the one of the `with` around, or `llvm`."""
    return Target(given) if given is not None else Target._entered[-1] if Target._entered else Target(DEFAULT)
