"""Which configuration a template gets: the innermost context that knows one gives it. Source: AutoTVM 0.9, `autotvm.task.dispatcher`.

Contexts that know logs are in `recorded_dispatch`.
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
    """Gives configurations inside a `with`; `current` is the innermost one. A subclass says what it knows in `_query_inside`."""

    current: ClassVar[DispatchContext]
    _around: DispatchContext | None = None

    def query(self, target: str, workload: Workload | None) -> Config:
        """The configuration of a workload on a target; of whatever template runs when the workload is None."""
        found = self._query_inside(target, workload)
        if found is not None:
            return found
        # Outside of any `with` it is asked directly, as TVM's tutorials do to show the best configuration.
        return (self._around or DispatchContext.current).query(target, workload)

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """From now on give this configuration to that workload. Raises ConfigError where that has no meaning."""
        raise ConfigError(f"asked {type(self).__name__} to take a configuration of {workload}; an ApplyHistoryBest takes one")

    def _query_inside(self, target: str, workload: Workload | None) -> Config | None:
        """What this context knows; None to ask the one around it."""
        return None

    def __enter__(self) -> Self:
        if self._around is not None:
            raise ConfigError(f"asked to enter a {type(self).__name__} that is entered already; leave it first, or make another")
        self._around = DispatchContext.current
        DispatchContext.current = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._around is not None
        DispatchContext.current, self._around = self._around, None


class ApplyConfig(DispatchContext):
    """One configuration for whatever is asked. `workload`: what was asked for last."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.workload: Workload | None = None

    def _query_inside(self, target: str, workload: Workload | None) -> Config:
        self.workload = workload
        return self._config

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """From now on give this configuration."""
        self.workload, self._config = workload, cfg


class FallbackContext(DispatchContext):
    """The root: an untuned configuration, one for each target and workload, which stays. Each is a warning of the logger "autotvm" when it is
    first asked for, unless `silent`."""

    def __init__(self) -> None:
        self.silent = False
        self._memory: dict[tuple[str, str], Config] = {}

    def _query_inside(self, target: str, workload: Workload | None) -> Config:
        if workload is None:
            return FallbackConfigEntity()
        key = (repr(workload), target)
        if key not in self._memory:
            if not self.silent:
                _logger.warning("no configuration of %s for target %s is known: a fallback is used, which may be much slower; tune it, or load a log", *key)
            self._memory[key] = FallbackConfigEntity()
        return self._memory[key]

    def update(self, target: str, workload: Workload, cfg: Config) -> None:
        """From now on give this configuration to that workload."""
        self._memory[repr(workload), target] = cfg

    def clear_cache(self, target: str, workload: Workload) -> None:
        """Forget what was given to a workload."""
        self._memory.pop((repr(workload), target), None)


_root = FallbackContext()
DispatchContext.current = _root

DEFAULT_TARGET = "llvm"
_targets = [DEFAULT_TARGET]


def clear_fallback_cache(target: str, workload: Workload) -> None:
    """Discard a fallback configuration: call it before a template runs again with other defaults."""
    _root.clear_cache(target, workload)


def current_target() -> str:
    """The target that configurations are asked for."""
    return _targets[-1]


@contextmanager
def on_target(target: str) -> Iterator[str]:
    """Ask for configurations of this target (its text) inside a `with`; "llvm" is the default."""
    _targets.append(target)
    try:
        yield target
    finally:
        _targets.pop()
