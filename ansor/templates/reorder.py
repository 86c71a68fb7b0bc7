"""Orders of axes. Source: AutoTVM 0.9, `define_reorder`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from ansor.errors import ConfigError
from ansor.templates.entities import ReorderEntity
from ansor.templates.knob import AnyAxis, TransformSpace, place_of

POLICIES = ("identity", "all", "interval_all", "candidate", "interleave", "interleave_cuda")


@dataclass(frozen=True, eq=False, repr=False)
class ReorderSpace(TransformSpace):
    """The ways to order axes."""


def reorder_space(
    name: str,
    axes: Sequence[AnyAxis],
    policy: str,
    *,
    interval: tuple[int, int] | None = None,
    candidate: Sequence[Sequence[AnyAxis]] | None = None,
    spatial: Sequence[Sequence[AnyAxis]] | None = None,
    reduce: Sequence[Sequence[AnyAxis]] | None = None,
) -> ReorderSpace:
    """The table of a reorder knob, with permutations in lexicographic order.

    identity: one order; all: n! orders; interval_all: every order of the axes from `interval[0]` up to, but excluding, `interval[1]`; candidate: lists of axes;
    interleave: one order, first the outer loops of the `spatial` chains, then their last loops merged with the `reduce` chains; interleave_cuda: one order,
    with the last loops of the spatial chains after all others.
    """
    asked = f"reorder {name!r} of {len(axes)} axes by policy {policy!r}"
    places: Iterable[Sequence[int]]
    if policy == "identity":
        places = [range(len(axes))]
    elif policy == "all":
        places = permutations(range(len(axes)))
    elif policy == "interval_all":
        places = _interval(len(axes), interval, asked)
    elif policy == "candidate":
        places = _chains(axes, candidate, "candidate", asked)
    elif policy in ("interleave", "interleave_cuda"):
        spatial_places, reduce_places = _chains(axes, spatial, "spatial", asked), _chains(axes, reduce, "reduce", asked)
        places = [_interleaved(spatial_places, reduce_places, last_behind=policy == "interleave_cuda")]
    else:
        raise ConfigError(f"asked for {asked}; policies are {', '.join(POLICIES)}")
    return ReorderSpace(policy, len(axes), tuple(ReorderEntity(perm) for perm in places))


def _interval(number: int, interval: tuple[int, int] | None, asked: str) -> list[tuple[int, ...]]:
    if interval is None or not 0 <= interval[0] <= interval[1] <= number:
        raise ConfigError(f"asked for {asked} with interval {interval}; give interval=(begin, end) within the axes")
    begin, end = interval
    return [(*range(begin), *inner, *range(end, number)) for inner in permutations(range(begin, end))]


def _chains(axes: Sequence[AnyAxis], chains: Sequence[Sequence[AnyAxis]] | None, word: str, asked: str) -> list[list[int]]:
    if chains is None:
        raise ConfigError(f"asked for {asked} without {word}; give {word}=[[axis, ...], ...]")
    return [[place_of(axis, axes, asked) for axis in chain] for chain in chains]


def _interleaved(spatial: list[list[int]], reduce: list[list[int]], *, last_behind: bool) -> list[int]:
    outer, last = _merged([chain[:-1] for chain in spatial]), [chain[-1:] for chain in spatial]
    if last_behind:
        return outer + _merged(reduce) + [place for chain in last for place in chain]
    return outer + _merged(last + reduce)


def _merged(chains: list[list[int]]) -> list[int]:
    """Merge chains: always take the next item of the chain with the most items left, on ties of the first."""
    left = [list(chain) for chain in chains]
    order = []
    while any(left):
        order.append(max(left, key=len).pop(0))
    return order
