"""The family of a declaration's operator: the declaration without its sizes.

    matmul, 512 x 512 x 512        sum([0 r0] * [r0 1])
    3x3 convolution, stride 2      sum([0 r0 2+r1 3+r2] * [1 r0 r1 r2])
    grouped convolution            sum([0 1/+r0 2+r1 3+r2] * [1 r0 r1 r2])

Each reduction of the normal form is a text: its operations on the tensors it reads, each with the axes in each of its indices. `0` is the first axis of the
result, `r0` the first reduction axis; `/` and `%` mark a quotient and a remainder. The text omits extents, factors and offsets, zeros around a tensor, names,
and whether a tensor is constant. It also omits axes of one element, and merges axes that are adjacent everywhere. Stages without a reduction are part of
those that read them. The family does not include what follows the last reduction: an epilogue does not change it. Without a reduction, the family is the
text of the outputs.

Families are deliberately wide: an operator of an unknown family is unlike all known ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ansor.ir.dag import Dag
from ansor.ir.normal.form import normal_form
from ansor.te.expr import COMPARISONS, Axis, Binary, Cast, Const, Expr, Reduce, Select
from ansor.te.fold import fold, postorder
from ansor.te.tensor import Compute, Read, Tensor

LARGEST = 200
"""The most nodes of a stage that is analysed and merged into its readers."""

COMMUTATIVE = ("add", "mul", "min", "max")
LINEAR = ("add", "sub", "mul", "div")
DIVIDED = {"floordiv": "/", "truncdiv": "/", "floormod": "%", "truncmod": "%"}
SYMBOLS = {"add": " + ", "sub": " - ", "mul": " * ", "div": " / "}
LOADED = -1
"""Stands for an axis in an index that is loaded from memory."""


@dataclass(frozen=True)
class Part:
    """An axis in an index, by its id, with marks for the operations on it."""

    axis: int
    marks: frozenset[str] = frozenset()


Index = frozenset[Part]


@dataclass(frozen=True)
class Term:
    """An expression without numbers. places: for a read, the parts of each index."""

    name: str
    operands: tuple[Term, ...] = ()
    places: tuple[Index, ...] | None = None

    def reads(self) -> Iterator[Term]:
        """The tensors it reads, from left to right."""
        if self.places is not None:
            yield self
        for operand in self.operands:
            yield from operand.reads()


CONSTANT = Term("constant")


@dataclass(frozen=True)
class _Node:
    """The result for a node: as a value, as an index, and whether it compares axes with each other."""

    term: Term
    index: Index = frozenset()
    relates: bool = False


def family(tensors: Sequence[Tensor]) -> str:
    """The reductions of a declaration, first to last, separated by semicolons; without any, the outputs."""
    return "; ".join(reductions(tensors))


def reductions(tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """The texts that make up a family."""
    dag = Dag(normal_form(tensors))
    terms: dict[str, tuple[Compute, Term]] = {}
    found, outputs = [], []
    for stage in dag.stages:
        if stage.compute is None:
            continue
        term, body = _term(stage.compute, terms), stage.compute.body
        if isinstance(body, Reduce):
            found.append(_text(stage.compute, Term(f"{body.combiner}{_dtype(stage.dtype)}", term.operands or (term,))))
            term = Term(f"@{len(found) - 1}", places=tuple(map(_one, stage.compute.axes)))
        elif any(stage is output for output in dag.outputs):
            outputs.append(_text(stage.compute, term))
        terms[stage.name] = stage.compute, term
    return tuple(found or outputs)


def _term(compute: Compute, terms: Mapping[str, tuple[Compute, Term]]) -> Term:
    """The body of a stage; for a large one, only a read of its result."""
    large = Term("large", places=tuple(map(_one, compute.axes)))
    if _exceeds(postorder(compute.body)):
        return large
    term = fold(compute.body, lambda node, operands: _visited(node, operands, terms)).term
    return large if _exceeds(_nodes(term)) else term


def _exceeds(nodes: Iterator[object]) -> bool:
    return sum(1 for _ in islice(nodes, LARGEST + 1)) > LARGEST


def _dtype(dtype: str) -> str:
    return "" if dtype == "float32" else f" {dtype}"


def _nodes(term: Term) -> Iterator[Term]:
    yield term
    for operand in term.operands:
        yield from _nodes(operand)


def _visited(node: Expr, operands: tuple[_Node, ...], terms: Mapping[str, tuple[Compute, Term]]) -> _Node:
    if isinstance(node, Const):
        return _Node(CONSTANT)
    if isinstance(node, Axis):
        return _Node(Term("axis", places=(_one(node),)), _one(node))
    if isinstance(node, Read):
        return _Node(_read(node, tuple(one.index for one in operands), terms), frozenset({Part(LOADED)}).union(*(one.index for one in operands)))
    if isinstance(node, Cast):
        return operands[0]
    index = frozenset[Part]().union(*(one.index for one in operands))
    if isinstance(node, Binary):
        return _binary(node.op, operands[0], operands[1])
    relates = any(one.relates for one in operands)
    if isinstance(node, Select) and not operands[0].relates:
        values = [one for one in operands[1:] if one.term != CONSTANT]
        if len(values) == 1:  # zeros around a tensor, or other numbers
            return values[0]
    name = f"reduce {node.combiner}" if isinstance(node, Reduce) else getattr(node, "name", type(node).__name__.lower())
    return _Node(Term(name, tuple(one.term for one in operands)), index, relates)


def _one(axis: Axis) -> Index:
    return frozenset({Part(id(axis))} if axis.extent > 1 else ())


def _binary(op: str, left: _Node, right: _Node) -> _Node:
    other = _marked(right.index, "-") if op == "sub" else right.index
    index = _marked(left.index, DIVIDED[op]) | other if op in DIVIDED else left.index | other
    if op in COMPARISONS:
        relates = len({part.axis for part in index}) > 1 and (CONSTANT not in (left.term, right.term) or any("-" in part.marks for part in index))
        relates = relates or any(part.axis == LOADED for part in index)
        return _Node(Term(op, (left.term, right.term)), index, relates)
    kept = [one.term for one in (left, right) if one.term != CONSTANT]
    relates = left.relates or right.relates
    if op in LINEAR and len(kept) < 2:
        return _Node(kept[0] if kept else CONSTANT, index, relates)
    return _Node(Term(op, (left.term, right.term)), index, relates)


def _marked(index: Index, mark: str) -> Index:
    return frozenset(replace(part, marks=part.marks | {mark}) for part in index)


def _read(read: Read, indices: tuple[Index, ...], terms: Mapping[str, tuple[Compute, Term]]) -> Term:
    """A read of an input, or the computation of the stage that is read."""
    if read.tensor.name not in terms:
        return Term(_dtype(read.tensor.dtype).strip(), places=indices)
    compute, term = terms[read.tensor.name]
    values = {id(axis): index for axis, index in zip(compute.axes, indices, strict=True)}
    return _with_indices(term, values)


def _with_indices(term: Term, values: Mapping[int, Index]) -> Term:
    def given(index: Index) -> Index:
        return frozenset(Part(one.axis, one.marks | part.marks) for part in index for one in values.get(part.axis, {Part(part.axis)}))

    places = None if term.places is None else tuple(map(given, term.places))
    return Term(term.name, tuple(_with_indices(one, values) for one in term.operands), places)


def _text(compute: Compute, term: Term) -> str:
    axes = [id(axis) for axis in compute.axes if axis.extent > 1]
    term = _shortened(term)
    while (pair := _neighbours(term, axes)) is not None:
        term = _without(term, pair[1])
        axes = [axis for axis in axes if axis != pair[1]]
    names = {axis: str(place) for place, axis in enumerate(axes)} | {LOADED: "?"}
    ordered = _ordered(term, names)
    for read in ordered.reads():
        for part in sorted((part for index in read.places or () for part in index if part.axis not in names), key=lambda one: sorted(one.marks)):
            names.setdefault(part.axis, f"r{len(names) - len(axes) - 1}")
    return _written(ordered, names)


def _shortened(term: Term) -> Term:
    """The term without constant indices and without signs."""
    places = term.places and tuple(frozenset(Part(part.axis, part.marks - {"-"}) for part in index) for index in term.places if index)
    return Term(term.name, tuple(map(_shortened, term.operands)), places)


def _neighbours(term: Term, axes: Sequence[int]) -> tuple[int, int] | None:
    """Two axes of which the second directly follows the first everywhere."""
    rows = [*([index for index in read.places or ()] for read in term.reads()), [frozenset({Part(axis)}) for axis in axes]]
    alone = {frozenset({Part(axis)}): axis for axis in {part.axis for row in rows for index in row for part in index if part.axis != LOADED}}
    for row in rows:
        for first, second in zip(row, row[1:], strict=False):
            pair = (alone.get(first, LOADED), alone.get(second, LOADED))
            if LOADED not in pair and pair[0] != pair[1] and all(_together(one, pair) for one in rows):
                return pair
    return None


def _together(row: Sequence[Index], pair: tuple[int, int]) -> bool:
    both = [place for place, index in enumerate(row) if any(part.axis in pair for part in index)]
    wanted = [frozenset({Part(axis)}) for axis in pair]
    return not both or len(both) == 2 and both[1] == both[0] + 1 and [row[place] for place in both] == wanted


def _without(term: Term, axis: int) -> Term:
    places = term.places and tuple(index for index in term.places if index != frozenset({Part(axis)}))
    return Term(term.name, tuple(_without(one, axis) for one in term.operands), places)


def _ordered(term: Term, names: Mapping[int, str]) -> Term:
    """The term with the operands of commutative operations in a canonical order."""
    operands = tuple(_ordered(one, names) for one in term.operands)
    return replace(term, operands=tuple(sorted(operands, key=lambda one: _written(one, names))) if term.name in COMMUTATIVE else operands)


def _written(term: Term, names: Mapping[int, str]) -> str:
    if term.places is not None:
        return f"{term.name}[{' '.join('+'.join(sorted(_part(part, names) for part in index)) for index in term.places)}]"
    if not term.operands:
        return term.name
    parts = [_written(one, names) for one in term.operands]
    return f"({SYMBOLS[term.name].join(parts)})" if term.name in SYMBOLS else f"{term.name}({', '.join(parts)})"


def _part(part: Part, names: Mapping[int, str]) -> str:
    return names.get(part.axis, "r") + "".join(sorted(part.marks))
