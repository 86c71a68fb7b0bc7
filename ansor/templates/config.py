"""The configuration as a template sees it: the space being collected, one point of it, or a fallback. Source: AutoTVM 0.9, `autotvm.task.space`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ansor.errors import ConfigError, InstantiationError
from ansor.templates.annotate import annotate_space
from ansor.templates.entities import AnnotateEntity, Entity, OtherOptionEntity, ReorderEntity, SplitEntity
from ansor.templates.knob import AnyAxis, Axis, Loop, OtherOptionSpace, TransformSpace, VirtualAxis, length_of
from ansor.templates.reorder import reorder_space
from ansor.templates.split import UNLIMITED, split_space


class Config(ABC):
    """The interface through which templates use a configuration.

    `cfg["name"]` is the value of a knob; iteration yields names in the order of definition. `flop` is the sum from `add_flop`, `errors` the messages from
    `raise_error`, `cost` the seconds recorded by a dispatch context, or infinity.
    The `define_*` methods return one `Axis` for each output of the knob.
    """

    is_fallback = False

    def __init__(self, code_hash: str | None = None) -> None:
        self.code_hash = code_hash
        self.errors: list[str] = []
        self.flop = 0.0
        self.cost = math.inf
        self._entities: dict[str, Entity] = {}

    @staticmethod
    def axis(var: int | Loop | VirtualAxis) -> VirtualAxis:
        """An axis to define knobs over, from an iteration count or an axis of a declaration. Raises ConfigError for anything else."""
        return VirtualAxis(var)

    reduce_axis = axis

    def define_split(
        self,
        name: str,
        axis: AnyAxis,
        policy: str = "factors",
        *,
        num_outputs: int = 0,
        max_factor: int = UNLIMITED,
        filter: Callable[[SplitEntity], object] | None = None,
        no_tail: bool | None = None,
        candidate: Sequence[Sequence[int]] | None = None,
    ) -> list[Axis]:
        """Define a knob that splits an axis into `num_outputs` loops. Its value has `.size`.

        Policies: factors, power2, verbose, candidate; see `split.split_space`. `filter` keeps the entities for which it is true.
        Raises ConfigError if no value is left, or the policy is unknown.
        """
        return self._define(name, SplitEntity, num_outputs, lambda: split_space(
            name, length_of(axis, f"split {name!r}"), policy,
            num_outputs=num_outputs, max_factor=max_factor, filter=filter, no_tail=no_tail, candidate=candidate,
        ))  # fmt: skip

    def define_reorder(
        self,
        name: str,
        axes: Sequence[AnyAxis],
        policy: str,
        *,
        interval: tuple[int, int] | None = None,
        candidate: Sequence[Sequence[AnyAxis]] | None = None,
        spatial: Sequence[Sequence[AnyAxis]] | None = None,
        reduce: Sequence[Sequence[AnyAxis]] | None = None,
    ) -> list[Axis]:
        """Define a knob that orders axes. Its value has `.perm`.

        Policies: identity, all, interval_all, candidate, interleave, interleave_cuda; see `reorder.reorder_space`.
        Raises ConfigError for an unknown policy, or if an argument that the policy needs is missing.
        """
        return self._define(name, ReorderEntity, len(axes), lambda: reorder_space(
            name, axes, policy, interval=interval, candidate=candidate, spatial=spatial, reduce=reduce
        ))  # fmt: skip

    def define_annotate(self, name: str, axes: Sequence[AnyAxis], policy: str, *, num_anchor: int | None = None) -> list[Axis]:
        """Define a knob that annotates axes. Its value has `.anns`.

        Policies: none, unroll, vec, these with the prefix try_, bind_gpu, bind_gpu_virtual, locate_cache; see `annotate.annotate_space`.
        Raises ConfigError for an unknown policy, or if no annotation is possible.
        """
        return self._define(name, AnnotateEntity, len(axes), lambda: annotate_space(name, axes, policy, num_anchor=num_anchor))

    def define_knob(self, name: str, candidate: Iterable[object]) -> list[Axis]:
        """Define a knob with these values. Its value has `.val`. Raises ConfigError if there are none, or `candidate` is not a list of values."""
        if isinstance(candidate, str) or not isinstance(candidate, Iterable):
            raise ConfigError(f"asked for knob {name!r} with candidate {candidate!r}; give a list of its values, such as [{candidate!r}]")
        return self._define(name, OtherOptionEntity, 0, lambda: OtherOptionSpace("candidate", 0, tuple(OtherOptionEntity(value) for value in candidate)))

    def add_flop(self, flop: float) -> None:
        """Add floating-point operations of the template, if they cannot be counted from its declaration."""
        self.flop += float(flop)

    def raise_error(self, msg: str) -> None:
        """Mark this configuration as impossible. The template continues, but `valid` becomes false, and `check` raises."""
        self.errors.append(msg)

    def valid(self) -> bool:
        """Whether `raise_error` was never called. Call this after the template has run."""
        return not self.errors

    def check(self) -> None:
        """Raises InstantiationError with all messages of `raise_error`, if there are any."""
        if self.errors:
            raise InstantiationError("; ".join(self.errors))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entities)

    # Any: whether a knob has a size, a perm, anns or a val depends on its definition, which static types cannot express.
    def __getitem__(self, name: str) -> Any:
        if name not in self._entities:
            raise ConfigError(f"asked for knob {name!r}; this configuration has {', '.join(map(repr, self._entities)) or 'none'}")
        return self._entities[name]

    @abstractmethod
    def _define(self, name: str, kind: type[Entity], num_output: int, make: Callable[[], TransformSpace]) -> list[Axis]:
        """Register a knob with values of type `kind`; `make` creates its table."""

    def _check_value(self, name: str, kind: type[Entity], num_output: int) -> None:
        """Raise ConfigError if the current value does not fit the knob: logs are untrusted, and may come from another version of the template."""
        entity = self._entities.get(name)
        if entity is None:
            return
        found = entity.size if isinstance(entity, SplitEntity) else entity.perm if isinstance(entity, ReorderEntity) else None
        if not isinstance(entity, kind) or (found is not None and len(found) != num_output):
            asked = f"asked for knob {name!r} as {kind.__name__}{f' of {num_output} numbers' if num_output else ''}"
            raise ConfigError(f"{asked}, but this configuration has {type(entity).__name__} {entity!a:.200}; give a configuration of this template")
