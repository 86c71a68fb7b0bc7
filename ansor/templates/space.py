"""Spaces of configurations, and their points; `fallback` has those for untuned shapes. Source: AutoTVM 0.9, `autotvm.task.space`.

Running a template on a `ConfigSpace` collects its knobs, each showing its first value. Running it on a `ConfigEntity` uses that configuration's values.
An index identifies a configuration only within its own space: in a record the values count, not the index.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from random import Random
from typing import TYPE_CHECKING, TypeGuard

from ansor.errors import ConfigError
from ansor.support.json_values import Json
from ansor.templates import mixed_radix
from ansor.templates.annotate import NUMBERS
from ansor.templates.config import Config
from ansor.templates.entities import AnnotateEntity, Entity, OtherOptionEntity, ReorderEntity, SplitEntity, same
from ansor.templates.knob import Axis, TransformSpace
from ansor.templates.split import SplitSpace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HANDMADE = -1
"""The index of a configuration that belongs to no space."""


class ConfigSpace(Config):
    """All configurations of a template, the product of its knobs.

    `len(space)` is the number of configurations; an index consists of the knobs' digits in the order of definition, the first knob varying fastest. `space_map`
    maps names to the knobs' tables. Defining a knob again replaces the earlier one of that name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.space_map: dict[str, TransformSpace] = {}

    @property
    def dims(self) -> list[int]:
        """The number of values of each knob."""
        return [len(space) for space in self.space_map.values()]

    @property
    def range_length(self) -> int:
        """The number of configurations, without limit: `len` raises OverflowError from 2**63 on."""
        return prod(self.dims)

    def __len__(self) -> int:
        return self.range_length

    def get(self, index: int) -> ConfigEntity:
        """The configuration at that index. Raises IndexError unless it is in [0, len)."""
        index = operator.index(index)  # NumPy integers are not JSON integers
        digits = self.point2knob(index)
        entities = {name: space[digit] for (name, space), digit in zip(self.space_map.items(), digits, strict=True)}
        return ConfigEntity(index, self.code_hash, entities)

    def point2knob(self, point: int) -> list[int]:
        """The digit of each knob. Raises IndexError unless the point is in [0, len)."""
        return mixed_radix.point2knob(point, self.dims)

    def knob2point(self, knob: Sequence[int]) -> int:
        """The index with these digits. Raises ConfigError if one is out of range for its knob."""
        return mixed_radix.knob2point(knob, self.dims)

    def find(self, config: Config) -> int | None:
        """The index of the configuration with the same values, whatever its own index; None if it is not in this space.

        A first size of -1 equals the size it stands for, which older logs hold instead.
        """
        if set(config) != set(self.space_map):
            return None
        digits = []
        for name, space in self.space_map.items():
            places = [place for place, entity in enumerate(space.entities) if _alike(space, entity, config[name])]
            if not places:
                return None
            digits.append(places[0])
        return self.knob2point(digits)

    def is_index_valid(self, index: int) -> bool:
        """Whether there is a configuration with that index."""
        return 0 <= index < self.range_length

    def get_next_index(self, index: int, n: int = 1, *, start: int = 0, end: int | None = None) -> int | None:
        """The index `n` positions later (earlier if negative); None if that is not in [start, end), by default the whole space."""
        found = index + n
        return found if start <= found < self._end(end) and self.is_index_valid(found) else None

    def get_rand_index(self, *, start: int = 0, end: int | None = None, to_exclude: Collection[int] = (), rng: Random | None = None) -> int:
        """A random index in [start, end) that is not excluded. Raises ConfigError if none is left."""
        first, behind = max(start, 0), self._end(end)
        excluded = sorted({index for index in to_exclude if first <= index < behind})
        if behind - first <= len(excluded):
            raise ConfigError(f"asked for a random index from {first} to {behind - 1}, {len(excluded)} of them excluded, so none is left; give a wider range")
        # Every excluded index at or before the result shifts it by one.
        found = first + (rng or Random()).randrange(behind - first - len(excluded))
        for index in excluded:
            if index > found:
                break
            found += 1
        return found

    def random_next_index(self, index: int, *, rng: Random | None = None) -> int:
        """A neighbour: one random knob takes another value. Returns the index itself if no knob has two values. Raises IndexError outside the space."""
        knob, rng = self.point2knob(index), rng or Random()
        free = [place for place, size in enumerate(self.dims) if size > 1]
        if not free:
            return index
        place = rng.choice(free)
        other = rng.randrange(self.dims[place] - 1)
        knob[place] = other + (other >= knob[place])
        return self.knob2point(knob)

    random_walk = random_next_index

    def __repr__(self) -> str:
        knobs = "".join(f"  {place:2d} {name}: {space}\n" for place, (name, space) in enumerate(self.space_map.items()))
        return f"ConfigSpace (len={self.range_length}, space_map=\n{knobs})"

    def _end(self, end: int | None) -> int:
        return self.range_length if end is None else min(end, self.range_length)

    def _define(self, name: str, kind: type[Entity], num_output: int, make: Callable[[], TransformSpace]) -> list[Axis]:
        space = make()
        if not len(space):
            raise ConfigError(f"asked to define knob {name!r} by {space}, which leaves no value; widen its filter, candidates or policy")
        self.space_map[name] = space
        self._entities[name] = space[0]
        return [Axis(space, output) for output in range(num_output)]


class ConfigEntity(Config):
    """One configuration: `index` in its space (-1 if handmade), `code_hash` of the template's source, and a value for each knob by name.

    `constraints` must be empty, else ConfigError is raised: AutoTVM has this argument but ignores it.
    """

    def __init__(self, index: int, code_hash: str | None, entity_map: Mapping[str, Entity], constraints: Sequence[object] = ()) -> None:
        if constraints:
            raise ConfigError(f"asked for a configuration with constraints {_short(constraints)}; check them in the template and call cfg.raise_error")
        super().__init__(code_hash)
        self.index = index
        self._entities = dict(entity_map)

    def get_flatten_feature(self) -> NDArray[np.float32]:
        """All values in one vector: sizes, permutations, annotations one-hot (11 numbers for an axis), options.

        Raises ConfigError for options that are not numbers.
        """
        import numpy

        return numpy.array([number for name, entity in self._entities.items() for number in _numbers(name, entity)], dtype=numpy.float32)

    def get_other_option(self) -> dict[str, object]:
        """The values of the knobs from `define_knob`, by name."""
        return {name: entity.val for name, entity in self._entities.items() if isinstance(entity, OtherOptionEntity)}

    def to_json_dict(self) -> dict[str, object]:
        """`{"index": ..., "code_hash": ..., "entity": [[name, "sp" | "re" | "an" | "ot", value], ...]}`, as log lines hold it."""
        return {"index": self.index, "code_hash": self.code_hash, "entity": [[name, *_tagged(entity)] for name, entity in self._entities.items()]}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Json]) -> ConfigEntity:
        """The inverse of `to_json_dict`. Raises ConfigError if a part is missing or of the wrong type."""
        missing = [key for key in ("index", "code_hash", "entity") if key not in json_dict]
        if missing:
            raise ConfigError(f"asked for a configuration without {', '.join(missing)}; give index, code_hash and entity")
        index, code_hash, entity = json_dict["index"], json_dict["code_hash"], json_dict["entity"]
        if not _is_int(index) or index < HANDMADE:
            raise ConfigError(f"asked for a configuration whose index is {_short(index)}; an index is an integer of at least {HANDMADE}")
        if not (code_hash is None or isinstance(code_hash, str)):
            raise ConfigError(f"asked for a configuration whose code_hash is {_short(code_hash)}; it is a text or null")
        if not isinstance(entity, (list, tuple)):
            raise ConfigError(f"asked for a configuration whose entity is {_short(entity)}; it is a list of [name, type, value]")
        values: dict[str, Entity] = {}
        for item in entity:
            name, value = _untagged(item)
            if name in values:
                raise ConfigError(f"asked for a configuration with two values for knob {_short(name)}; give one")
            values[name] = value
        return ConfigEntity(index, code_hash, values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConfigEntity):
            return NotImplemented
        if (self.index, self.code_hash, list(self)) != (other.index, other.code_hash, list(other)):
            return False
        return all(same(self[name], other[name]) for name in self)

    def __hash__(self) -> int:
        return hash((self.index, self.code_hash, tuple(self)))

    def __repr__(self) -> str:
        return f"{list(self._entities.items())},{self.code_hash},{self.index}"

    def _define(self, name: str, kind: type[Entity], num_output: int, make: Callable[[], TransformSpace]) -> list[Axis]:
        self._check_value(name, kind, num_output)
        return [Axis(None, output) for output in range(num_output)]


def _alike(space: TransformSpace, one: Entity, other: Entity) -> bool:
    if isinstance(space, SplitSpace) and isinstance(one, SplitEntity) and isinstance(other, SplitEntity):
        return space.filled(one) == space.filled(other)
    return same(one, other)


def _numbers(name: str, entity: Entity) -> Sequence[float]:
    if isinstance(entity, SplitEntity):
        return entity.size
    if isinstance(entity, ReorderEntity):
        return entity.perm
    if isinstance(entity, AnnotateEntity):
        return [float(NUMBERS.get(str(ann)) == place) for ann in entity.anns for place in range(len(NUMBERS))]
    if not isinstance(entity.val, int | float):
        raise ConfigError(f"asked for the features of knob {name!r}, whose value is {_short(entity.val)}; give numbers as candidates")
    return [float(entity.val)]


def _tagged(entity: Entity) -> tuple[str, object]:
    if isinstance(entity, SplitEntity):
        return "sp", entity.size
    if isinstance(entity, ReorderEntity):
        return "re", entity.perm
    if isinstance(entity, AnnotateEntity):
        return "an", entity.anns
    return "ot", entity.val


def _untagged(item: Json) -> tuple[str, Entity]:
    if not isinstance(item, (list, tuple)) or len(item) != 3 or not isinstance(name := item[0], str):
        raise ConfigError(f"asked for a knob from {_short(item)}; a knob is [name, type, value]")
    _, tag, value = item
    if tag == "ot":
        return name, OtherOptionEntity(value)
    if not isinstance(value, (list, tuple)):
        raise ConfigError(f"asked for knob {_short(name)} with value {_short(value)}; a value of type {_short(tag)} is a list")
    integers = [number for number in value if _is_int(number)]
    texts = [text for text in value if isinstance(text, str) or _is_int(text)]
    if tag == "sp" and len(integers) == len(value) > 0:
        return name, SplitEntity(integers)
    if tag == "re" and sorted(integers) == list(range(len(value))):
        return name, ReorderEntity(integers)
    if tag == "an" and len(texts) == len(value):
        return name, AnnotateEntity(texts)
    raise ConfigError(f"asked for knob {_short(name)} of type {_short(tag)} with value {_short(value)}; sp has sizes, re a permutation, an texts, ot any value")


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: object) -> str:
    """A short printable form of a value that may come from a file."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= 60 else f"{text[:57]}..."
