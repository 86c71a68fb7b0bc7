"""Products of tensors summed over chosen dimensions: tensordot and einsum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Const, Expr
from ansor.te.nn.layout import summed, whole_numbers
from ansor.te.tensor import Tensor, declared


def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2, name: str = "tensordot") -> Tensor:
    """The product of a and b summed over pairs of dimensions, as NumPy's: the last n of `a` with the first n of `b`, or two lists of dimensions.

    The result has the other dimensions of `a`, then those of `b`.
    """
    left, right = _pairs(name, a, b, axes)
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    of_a = [next(letters) for _ in a.shape]
    of_b = [next(letters) for _ in b.shape]
    for one, other in zip(left, right, strict=True):
        of_b[other] = of_a[one]
    kept = [letter for d, letter in enumerate(of_a) if d not in left] + [letter for d, letter in enumerate(of_b) if d not in right]
    return einsum(f"{''.join(of_a)},{''.join(of_b)}->{''.join(kept)}", a, b, name=name)


def einsum(subscripts: str, *operands: Tensor, name: str = "einsum") -> Tensor:
    """The sum of products that `subscripts` describes, such as "ij,jk->ik": a letter for each dimension; letters that the result lacks are summed over.

    Without an arrow the result has the letters that occur once, in alphabetical order. There is no ellipsis.
    """
    given, arrow, kept = subscripts.replace(" ", "").partition("->")
    inputs = given.split(",")
    if not arrow:
        kept = "".join(sorted(letter for letter in set(given) - {","} if given.count(letter) == 1))
    extents = _extents(name, subscripts, inputs, operands)
    if len(set(kept)) != len(kept) or not set(kept) <= set(extents):
        raise DeclarationError(f"asked for {name} of {subscripts!r}; the result's letters have to be distinct, and each has to occur in an operand")
    out = {letter: Axis(f"i{d}", extents[letter]) for d, letter in enumerate(kept)}
    taps = {letter: Axis(f"r{d}", extents[letter], "reduce") for d, letter in enumerate(letter for letter in extents if letter not in out)}
    places: dict[str, Expr] = {**out, **{letter: tap if tap.extent > 1 else Const(0, "int32") for letter, tap in taps.items()}}
    values = [operand[tuple(places[letter] if extent > 1 else Const(0, "int32") for letter, extent in zip(letters, operand.shape, strict=True))]
              for letters, operand in zip(inputs, operands, strict=True)]
    body = values[0]
    for value in values[1:]:
        body = body * value
    return declared(name, tuple(out.values()), summed(body, [tap for tap in taps.values() if tap.extent > 1]))


def _extents(name: str, subscripts: str, inputs: Sequence[str], operands: Sequence[Tensor]) -> dict[str, int]:
    """The extent of each letter, in order of first occurrence. Extents of 1 are repeated."""
    shapes = " and ".join(str(operand.shape) for operand in operands)
    if not operands or len(inputs) != len(operands) or any(len(letters) != operand.ndim for letters, operand in zip(inputs, operands, strict=False)):
        raise DeclarationError(f"asked for {name} of {subscripts!r} with operands of shapes {shapes}; give one letter per dimension of each operand")
    extents: dict[str, int] = {}
    for letters, operand in zip(inputs, operands, strict=True):
        for letter, extent in zip(letters, operand.shape, strict=True):
            known = extents.get(letter, extent)
            if not letter.isalpha() or (1 not in (extent, known) and known != extent):
                raise DeclarationError(f"asked for {name} of {subscripts!r} with operands of shapes {shapes}; {letter!r} stands for {known} and {extent}: "
                                       "a letter stands for one extent")
            extents[letter] = max(extents.get(letter, 1), extent)
    return extents


def _pairs(name: str, a: Tensor, b: Tensor, axes: int | Sequence[int] | Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Dimensions of `a`, and those of `b` that they meet, counted from the front."""
    if not isinstance(axes, Iterable):
        (count,) = whole_numbers(axes)
        left, right = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        first, second = axes
        left, right = list(whole_numbers(first)), list(whole_numbers(second))
        left, right = [d % max(a.ndim, 1) for d in left], [d % max(b.ndim, 1) for d in right]
    good = len(left) == len(right) and all(0 <= d < a.ndim and 0 <= e < b.ndim and a.shape[d] == b.shape[e] for d, e in zip(left, right, strict=True))
    if not good or len(set(left)) != len(left) or len(set(right)) != len(right):
        raise DeclarationError(f"asked for {name} of {a.name} with shape {a.shape} and {b.name} with shape {b.shape} over {axes}; give pairs of dimensions "
                               "that are equal")
    return left, right
