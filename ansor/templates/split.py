"""Splits of one axis into several loops. Source: AutoTVM 0.9, `define_split`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ansor.errors import ConfigError
from ansor.templates.entities import SplitEntity
from ansor.templates.knob import TransformSpace, divisors

POLICIES = ("factors", "power2", "verbose", "candidate")
UNLIMITED = 1 << 31


@dataclass(frozen=True, eq=False, repr=False)
class SplitSpace(TransformSpace):
    """The ways to split an axis of `product` iterations."""

    product: int

    def __repr__(self) -> str:
        return f"Split(policy={self.policy}, product={self.product}, num_outputs={self.num_output}) len={len(self)}"

    def filled(self, entity: SplitEntity) -> list[int]:
        """The sizes, with a first -1 replaced by the size that covers the axis."""
        first, *inner = entity.size
        inside = prod(inner)
        return [-(-self.product // inside) if first == -1 and inside > 0 else first, *inner]


def split_space(
    name: str,
    extent: int,
    policy: str,
    *,
    num_outputs: int,
    max_factor: int = UNLIMITED,
    filter: Callable[[SplitEntity], object] | None = None,
    no_tail: bool | None = None,
    candidate: Sequence[Sequence[int]] | None = None,
) -> SplitSpace:
    """The table of a split knob.

    factors: divisors of the extent, so that inner sizes divide it; power2: powers of two up to the extent; verbose: both (ascending; AutoTVM's order
    comes from a hash table); candidate: the given lists. If sizes need not divide it (`no_tail` false, the default for power2 and verbose), their product is at
    most the extent. `max_factor` bounds the inner sizes. The innermost size varies slowest, then the next inner one, and so on.
    """
    asked = f"split {name!r} of {extent} iterations"
    if num_outputs < 1:
        raise ConfigError(f"asked for {asked} into {num_outputs} loops; give num_outputs, at least 1")
    if policy not in POLICIES:
        raise ConfigError(f"asked for {asked} by policy {policy!r}; policies are {', '.join(POLICIES)}")
    if policy == "candidate":
        entities = _given(candidate, num_outputs, asked)
    else:
        factors = [factor for factor in _factors(extent, policy) if factor <= max_factor]
        divide = policy == "factors" if no_tail is None else no_tail
        entities = [SplitEntity((-1, *sizes)) for sizes in _inner_sizes(extent, factors, num_outputs - 1, divide)]
    kept = tuple(entity for entity in entities if filter is None or filter(entity))
    return SplitSpace(policy, num_outputs, kept, extent)


def _given(candidate: Sequence[Sequence[int]] | None, num_outputs: int, asked: str) -> list[SplitEntity]:
    if candidate is None:
        raise ConfigError(f"asked for {asked} by policy 'candidate' without candidates; give candidate=[[...], ...]")
    for sizes in candidate:
        if len(sizes) != num_outputs or not all(size >= 1 for size in sizes[1:]) or not (sizes[0] >= 1 or sizes[0] == -1):
            raise ConfigError(f"asked for {asked} as {list(sizes)}; give {num_outputs} sizes of at least 1; the first may be -1 for what is left")
    return [SplitEntity(sizes) for sizes in candidate]


def _factors(extent: int, policy: str) -> list[int]:
    powers = [1 << power for power in range(extent.bit_length())]
    if policy == "power2":
        return powers
    return list(divisors(extent)) if policy == "factors" else sorted({*divisors(extent), *powers})


def _inner_sizes(extent: int, factors: Sequence[int], number: int, divide: bool, inside: int = 1) -> Iterator[tuple[int, ...]]:
    """Tuples of `number` factors, the last varying slowest, that can split the extent together with `inside`, the product of the sizes inside them."""
    if number == 0:
        # A product equal to the extent divides it, so it is valid with tails as well.
        yield ()
        return
    for factor in factors:
        product = inside * factor
        if product > extent:
            break
        # If the inner sizes do not divide the extent, no outer sizes will.
        if divide and extent % product:
            continue
        for outer in _inner_sizes(extent, factors, number - 1, divide, product):
            yield (*outer, factor)


def largest_sizes(name: str, space: SplitSpace, limits: Sequence[int]) -> SplitEntity:
    """Sizes chosen from innermost to outermost, each the largest divisor of the rest of the axis within its limit; -1 is no limit.

    128 with [-1, 8, 4] gives [4, 8, 4]. Raises ConfigError if a limit allows none. Source: AutoTVM 0.9, `fallback_split`.
    """
    if len(limits) != space.num_output:
        raise ConfigError(f"asked to bound the {space.num_output} loops of split {name!r} by {list(limits)}; give one limit per loop")
    left = space.product
    sizes: list[int] = []
    for limit in reversed(limits):
        allowed = [factor for factor in divisors(left) if limit == -1 or factor <= limit]
        if not allowed:
            raise ConfigError(f"asked to split {name!r} of {space.product} iterations within {list(limits)}; give limits of at least 1, or -1")
        sizes.append(allowed[-1])
        left //= allowed[-1]
    return SplitEntity(sizes[::-1])
