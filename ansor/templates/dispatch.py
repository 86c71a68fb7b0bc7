"""Chooses a template's configuration: the innermost context that has one provides it. Source: AutoTVM 0.9, `autotvm.task.dispatcher`.

`recorded_dispatch` has the contexts that read logs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import ClassVar, Self, TypeAlias

from ansor.errors import ConfigError
from ansor.support.json_values import Json
from ansor.templates.config import Config
from ansor.templates.fallback import FallbackConfigEntity

_logger = logging.getLogger("autotvm")

Workload: TypeAlias = tuple[Json, ...]
"""The name of a template and its arguments, tensors as `("TENSOR", shape, dtype)`."""


class DispatchContext:
    """Provides configurations inside a `with`; `current` is the innermost context. A subclass returns its own in `_query_inside`."""

    current: ClassVar[DispatchContext]
    _around: DispatchContext | None = None

    def query(self, target: str, workload: Workload | None) -> Config:
        """The configuration of a workload on a target. If the workload is None, the configuration of the running template."""
        found = self._query_inside(target, workload)
        if found is not None:
            return found
        # A context also answers outside of any `with`: TVM's tutorials query one there to show the best configuration.
        return (self._around or DispatchContext.current).query(target, workload)

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """Use this configuration for that workload from now on. Raises ConfigError if the context cannot store it."""
        raise ConfigError(f"asked {type(self).__name__} to store a configuration of {workload}; use an ApplyHistoryBest")

    def _query_inside(self, target: str, workload: Workload | None) -> Config | None:
        """The configuration in this context; None to ask the enclosing one."""
        return None

    def __enter__(self) -> Self:
        if self._around is not None:
            raise ConfigError(f"asked to enter a {type(self).__name__} that is already entered; exit it first, or create another")
        self._around = DispatchContext.current
        DispatchContext.current = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._around is not None
        DispatchContext.current, self._around = self._around, None


class ApplyConfig(DispatchContext):
    """A single configuration for every query. `workload`: the workload of the last query."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.workload: Workload | None = None

    def _query_inside(self, target: str, workload: Workload | None) -> Config:
        self.workload = workload
        return self._config

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """Use this configuration from now on."""
        self.workload, self._config = workload, cfg


class FallbackContext(DispatchContext):
    """The root context: creates an untuned configuration for each target and workload, and keeps it for later queries. Unless `silent`, the logger
    "autotvm" warns when each is first used."""

    def __init__(self) -> None:
        self.silent = False
        self._memory: dict[tuple[str, str], Config] = {}

    def _query_inside(self, target: str, workload: Workload | None) -> Config:
        if workload is None:
            return FallbackConfigEntity()
        key = (repr(workload), target)
        if key not in self._memory:
            if not self.silent:
                _logger.warning("no configuration of %s for target %s is known: using a fallback, which may be much slower; tune it, or load a log", *key)
            self._memory[key] = FallbackConfigEntity()
        return self._memory[key]

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """Use this configuration for that workload from now on."""
        self._memory[repr(workload), target] = cfg

    def clear_cache(self, target: str, workload: Workload) -> None:
        """Forget the configuration of a workload."""
        self._memory.pop((repr(workload), target), None)


_root = FallbackContext()
DispatchContext.current = _root

DEFAULT_TARGET = "llvm"
_targets = [DEFAULT_TARGET]


def clear_fallback_cache(target: str, workload: Workload) -> None:
    """Discard a fallback configuration: call it before running a template again with other defaults."""
    _root.clear_cache(target, workload)


def current_target() -> str:
    """The target for which configurations are requested."""
    return _targets[-1]


@contextmanager
def on_target(target: str) -> Iterator[str]:
    """Request configurations for this target (its text) inside a `with`; the default is "llvm"."""
    _targets.append(target)
    try:
        yield target
    finally:
        _targets.pop()
