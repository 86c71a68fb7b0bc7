"""The auto-scheduler's 14 transform steps, as its logs hold them. Source: TVM 0.9, `auto_scheduler`, log version v0.6.

    ["SP", 2, 0, 1024, [2, 1, 4], 1]        SplitStep(stage_id=2, iter_id=0, extent=1024, lengths=(2, 1, 4), inner_to_outer=True)

A step identifies stages and iterators (loops) by their numbers at that point. Steps are data; `transform` applies them to a state.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from enum import IntEnum
from typing import ClassVar, NoReturn, TypeAlias, cast

from ansor.support.json_values import Json, kind, refuse, told

Form: TypeAlias = "Callable[[Json], object]"
"""Parses a field: returns its value, or raises a ValueError that says what it should be."""

LARGEST = 2**31 - 1
"""Numbers in steps have 32 bits."""


class IteratorAnnotation(IntEnum):
    """How a loop runs."""

    NONE = 0
    UNROLL = 1
    VECTORIZE = 2
    PARALLEL = 3
    VTHREAD = 4
    BLOCK_X = 5
    THREAD_X = 6
    BLOCK_Y = 7
    THREAD_Y = 8
    BLOCK_Z = 9
    THREAD_Z = 10
    TENSORIZE = 11


ANNOTATIONS = ("for", "unroll", "vectorize", "parallel", "vthread", "blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y", "blockIdx.z", "threadIdx.z",
               "tensorize")  # fmt: skip
"""The name of each annotation, indexed by `IteratorAnnotation`."""


def _integer(low: int, wanted: str) -> Callable[[Json], int]:
    def read(value: Json) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= LARGEST:
            raise ValueError(wanted)
        return value

    return read


_index = _integer(0, "a number from 0")
_count = _integer(1, "a number from 1")
_number = _integer(-LARGEST - 1, "a number of 32 bits")


def _list_of(form: Form) -> Form:
    def read(value: Json) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise ValueError("a list")
        return tuple(map(form, value))

    return read


def _flag(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int) or value not in (0, 1):
        raise ValueError("0 or 1")
    return value == 1


def _extent(value: Json) -> object:
    return _index(value) or None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else _unfit("a text")


def _annotation(value: Json) -> IteratorAnnotation:
    number = _index(value)
    return IteratorAnnotation(number) if number in list(IteratorAnnotation) else _unfit(f"a number from 0 to {max(IteratorAnnotation)}")


def _unfit(wanted: str) -> NoReturn:
    raise ValueError(wanted)


_indices = _list_of(_index)


@dataclass(frozen=True)
class LoggedStep:
    """One transformation of a stage. `code` is its name in logs; `forms` parse the fields after `stage_id`."""

    code: ClassVar[str] = ""
    forms: ClassVar[tuple[Form, ...]] = ()
    stage_id: int

    def to_list(self) -> list[Json]:
        """The step as a log line holds it."""
        return [self.code, *map(_plain, astuple(self))]


@dataclass(frozen=True)
class AnnotationStep(LoggedStep):
    """AN: makes a loop parallel, vectorized or unrolled, or binds it to GPU threads."""

    code, forms = "AN", (_index, _annotation)
    iter_id: int
    annotation: IteratorAnnotation


@dataclass(frozen=True)
class FuseStep(LoggedStep):
    """FU: fuses adjacent loops. Fusing no loops creates a new loop of extent 1."""

    code, forms = "FU", (_indices,)
    fused_ids: tuple[int, ...]


@dataclass(frozen=True)
class PragmaStep(LoggedStep):
    """PR: adds a hint for the compiler, `auto_unroll_max_step$64`."""

    code, forms = "PR", (_index, _text)
    iter_id: int
    pragma_type: str


@dataclass(frozen=True)
class ReorderStep(LoggedStep):
    """RE: reorders loops: the loop at position i is the former `after_ids[i]`."""

    code, forms = "RE", (_indices,)
    after_ids: tuple[int, ...]


@dataclass(frozen=True)
class SplitStep(LoggedStep):
    """SP: splits a loop into len(lengths) + 1 parts. `lengths` are the inner ones, outermost first (with `inner_to_outer`). The extent may be unknown.

    In a sketch a length may be open: None. Log lines never hold such a step.
    """

    code, forms = "SP", (_index, _extent, _list_of(_count), _flag)
    iter_id: int
    extent: int | None
    lengths: tuple[int | None, ...]
    inner_to_outer: bool = True


@dataclass(frozen=True)
class FollowSplitStep(LoggedStep):
    """FSP: splits into `n_split` + 1 loops, with the lengths of split step `src_step_id`; the last length is the product of the rest."""

    code, forms = "FSP", (_index, _index, _index)
    iter_id: int
    src_step_id: int
    n_split: int


@dataclass(frozen=True)
class FollowFusedSplitStep(LoggedStep):
    """FFSP: splits by the product of the lengths at `level` of several splits, as the factor or as the number of parts."""

    code, forms = "FFSP", (_index, _indices, _index, _flag)
    iter_id: int
    src_step_ids: tuple[int, ...]
    level: int
    factor_or_nparts: bool


@dataclass(frozen=True)
class StorageAlignStep(LoggedStep):
    """SA: aligns rows of a stage's buffer to `offset` modulo `factor`."""

    code, forms = "SA", (_index, _number, _number)
    iter_id: int
    factor: int
    offset: int


@dataclass(frozen=True)
class ComputeAtStep(LoggedStep):
    """CA: computes a stage inside a loop of another stage."""

    code, forms = "CA", (_index, _index)
    target_stage_id: int
    target_iter_id: int


@dataclass(frozen=True)
class ComputeInlineStep(LoggedStep):
    """CI: inlines a stage into its readers."""

    code = "CI"


@dataclass(frozen=True)
class ComputeRootStep(LoggedStep):
    """CR: computes a stage in its own nest, outside the loops of other stages."""

    code = "CR"


@dataclass(frozen=True)
class CacheReadStep(LoggedStep):
    """CHR: inserts a copy of this stage after it, for the given readers. Later stages move up by one."""

    code, forms = "CHR", (_text, _indices)
    scope_name: str
    reader_stage_ids: tuple[int, ...]


@dataclass(frozen=True)
class CacheWriteStep(LoggedStep):
    """CHW: inserts a stage before this one that computes it; this one copies the result. Later stages move up by one."""

    code, forms = "CHW", (_text,)
    scope_name: str


@dataclass(frozen=True)
class RfactorStep(LoggedStep):
    """RF: inserts a stage of partial results before this one, for a reduction loop, which becomes its loop number `factor_iter_id`."""

    code, forms = "RF", (_index, _index)
    iter_id: int
    factor_iter_id: int


STEPS: dict[str, type[LoggedStep]] = {step.code: step for step in (
    AnnotationStep, FuseStep, PragmaStep, ReorderStep, SplitStep, FollowSplitStep, FollowFusedSplitStep, StorageAlignStep, ComputeAtStep, ComputeInlineStep,
    ComputeRootStep, CacheReadStep, CacheWriteStep, RfactorStep,
)}  # fmt: skip
"""The kinds of steps, by name in logs."""

_FIELDS = {code: [field.name for field in fields(step)] for code, step in STEPS.items()}


def step_from_list(listed: Json) -> LoggedStep:
    """Parse a step from a list in a log line. Raises RecordError with the reason if it is not one."""
    if not isinstance(listed, list) or not listed:
        refuse(f"it has {kind(listed)} for a step")
    code, *values = listed
    step = STEPS.get(code) if isinstance(code, str) else None
    if step is None:
        refuse(f"it has a step of the kind {told(code)}; kinds are {', '.join(STEPS)}")
    names = _FIELDS[step.code]
    if len(values) != len(names):
        refuse(f"its step {code} has {len(values)} values, not {len(names)}: {', '.join(names)}")
    read = []
    for name, form, value in zip(names, (_index, *step.forms), values, strict=True):
        try:
            read.append(form(value))
        except ValueError as error:
            refuse(f"the {name} of its step {code} is {told(value)}, not {error}")
    return cast("Callable[..., LoggedStep]", step)(*read)


def _plain(value: object) -> Json:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, int):
        return int(value or 0)  # an unknown extent is 0
    return cast(str, value)
