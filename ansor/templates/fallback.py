"""The configuration of an untuned workload. Source: AutoTVM 0.9, `FallbackConfigEntity` of `autotvm.task.space`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Protocol

from ansor.errors import ConfigError
from ansor.templates.config import Config
from ansor.templates.entities import Entity, SplitEntity
from ansor.templates.knob import Axis, TransformSpace, divisors
from ansor.templates.space import ConfigSpace
from ansor.templates.split import SplitSpace, largest_sizes


class FallbackConfigEntity(ConfigSpace):
    """The configuration of an untuned workload: its template collects knobs into it, and then sets their values.

    A value that was set (by `cfg[name] = ...`, `fallback_split` or a reference log) is kept when the knob is defined again.
    """

    is_fallback = True

    def __init__(self) -> None:
        super().__init__()
        self._set: set[str] = set()

    def __setitem__(self, name: str, entity: Entity) -> None:
        self._entities[name] = entity
        self._set.add(name)

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Choose sizes, innermost first: each is the largest divisor of the rest of the axis within `constraints` (outermost first, -1 for no limit).

        For 128, [-1, 8, 4] gives [4, 8, 4]; for 49 it gives [7, 7, 1]. Raises ConfigError if there are no such sizes, or `name` is not a split.
        """
        space = self.space_map.get(name)
        if not isinstance(space, SplitSpace):
            raise ConfigError(f"asked to fall back for split {name!r}; this configuration has the splits {', '.join(map(repr, self._splits())) or 'none'}")
        self[name] = largest_sizes(name, space, constraints)

    def fallback_with_reference_log(self, ref_log: Iterable[tuple[HasConfig, object]]) -> None:
        """Copy the most similar record of other shapes. Takes pairs of an object with a `.config` and a result, as from `load_from_file`.

        Similarity, summed over the splits: the share of the axis's divisors that also divide the product of the recorded sizes. A size of -1 counts as 1,
        since the record does not hold the extent. The recorded sizes limit all loops of a split except the outermost; other knobs are copied. Skips records
        that lack one of the knobs or have another number of loops. If no record is similar, nothing changes.
        """
        wanted = {name: set(divisors(space.product)) for name, space in self._splits().items()}
        best_score, best = 0.0, None
        for reference, _ in ref_log:
            score = sum(_shared(wanted[name], sizes) for name, sizes in self._sizes(reference.config).items())
            if score > best_score:
                best_score, best = score, reference.config
        if best is None:
            return
        for name, sizes in self._sizes(best).items():
            self.fallback_split(name, [-1, *sizes[1:]])
        for name, space in self.space_map.items():
            if not isinstance(space, SplitSpace):
                self[name] = best[name]

    def __repr__(self) -> str:
        return f"{list(self._entities.items())},{self.code_hash}"

    def _splits(self) -> dict[str, SplitSpace]:
        return {name: space for name, space in self.space_map.items() if isinstance(space, SplitSpace)}

    def _sizes(self, config: Config) -> dict[str, list[int]]:
        """The sizes of our splits in another configuration; empty if it does not fit."""
        if not set(self.space_map) <= set(config):
            return {}
        found = {}
        for name, space in self._splits().items():
            entity = config[name]
            if not isinstance(entity, SplitEntity) or len(entity.size) != space.num_output or not all(size >= 1 for size in entity.size[1:]):
                return {}
            found[name] = entity.size
        return found

    def _define(self, name: str, kind: type[Entity], num_output: int, make: Callable[[], TransformSpace]) -> list[Axis]:
        kept = self._entities[name] if name in self._set else None
        if kept is not None:
            self._check_value(name, kind, num_output)
        axes = super()._define(name, kind, num_output, make)
        if kept is not None:
            self._entities[name] = kept
        return axes


class HasConfig(Protocol):
    """The part of a log record that fallbacks need."""

    @property
    def config(self) -> Config: ...


def _shared(factors: set[int], sizes: Sequence[int]) -> float:
    product = prod(size for size in sizes if size >= 1)
    return sum(product % factor == 0 for factor in factors) / len(factors)
