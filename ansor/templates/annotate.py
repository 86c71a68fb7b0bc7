"""Annotations of axes. Source: AutoTVM 0.9, `define_annotate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from ansor.errors import ConfigError
from ansor.templates.entities import AnnotateEntity
from ansor.templates.knob import AnyAxis, TransformSpace

WORDS = ("none", "unroll", "vec")
_BINDINGS = {
    "bind_gpu": (("blockIdx", "threadIdx"), (3, 2, 1)),
    "bind_gpu_virtual": (("blockIdx", "vthread", "threadIdx"), (3, 2, 1)),
}
"""Policy -> GPU threads to bind loops to, outermost first, and the possible numbers of dimensions, largest first."""

NUMBERS = {
    "none": 0, "vec": 1, "unroll": 2, "blockIdx.x": 3, "blockIdx.y": 4, "blockIdx.z": 5, "threadIdx.x": 6, "threadIdx.y": 7, "threadIdx.z": 8,
    "vthread": 9, "fuse": 10,
}  # fmt: skip
"""Annotation -> its position in the one-hot feature."""


@dataclass(frozen=True, eq=False, repr=False)
class AnnotateSpace(TransformSpace):
    """The ways to annotate axes."""


def annotate_space(name: str, axes: Sequence[AnyAxis], policy: str, *, num_anchor: int | None = None) -> AnnotateSpace:
    """The table of an annotation knob. Policies:

    none, unroll, vec and try (the same as none), joined by "_": every combination of these words over the axes, last axis fastest, at most one vec.
    bind_gpu, bind_gpu_virtual: a single entity, determined by the number of axes. locate_cache: every choice of `num_anchor` axes.
    """
    asked = f"annotation {name!r} of {len(axes)} axes by policy {policy!r}"
    entities: list[AnnotateEntity]
    if policy in _BINDINGS:
        entities = [AnnotateEntity(_bound(len(axes), policy, asked))]
    elif policy == "locate_cache":
        if num_anchor is None or num_anchor < 0:
            raise ConfigError(f"asked for {asked} with num_anchor={num_anchor}; give the number of caches")
        entities = [AnnotateEntity(places) for places in combinations(range(len(axes)), num_anchor)]
    else:
        words = policy.replace("try", "none").split("_")
        if not set(words) <= set(WORDS):
            policies = ", ".join((*WORDS, "try_unroll", "try_vec", "try_unroll_vec", *_BINDINGS, "locate_cache"))
            raise ConfigError(f"asked for {asked}; policies are {policies}")
        entities = [AnnotateEntity(anns) for anns in product(words, repeat=len(axes)) if anns.count("vec") <= 1]
    return AnnotateSpace(policy, len(axes), tuple(entities))


def _bound(number: int, policy: str, asked: str) -> list[str]:
    """Bind the innermost loops in as many dimensions as the loops suffice for, and fuse the other loops into them."""
    kinds, dimensions = _BINDINGS[policy]
    for count in dimensions:
        bound = len(kinds) * count
        if number >= bound:
            names = [kind if kind == "vthread" else f"{kind}.{letter}" for kind in kinds for letter in "zyx"[3 - count :]]
            return ["fuse"] * (number - bound) + names
    raise ConfigError(f"asked for {asked}; give at least {len(kinds)} axes")
