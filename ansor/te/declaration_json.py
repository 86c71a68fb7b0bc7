"""Converts declarations to JSON and back, so that a file can hold what a key stands for, as data that is never executed.

    {"stages": [{"name": "C", "dtype": "float32", "axes": [["i", 4]], "reduce": [["k", 0, 8]], "nodes": [["axis", 0], ["read", 0, 0, 1], ...]}],
     "tensors": [0, 1]}

Expressions are tables of nodes, each of which refers to its operands by number, so that deep expressions do not nest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from ansor.errors import DeclarationError, RecordError
from ansor.support.json_values import Json, kind, refuse, told
from ansor.te.expr import ARITHMETIC, BITWISE, COMPARISONS, LOGIC, Axis, Binary, Call, Cast, Const, Expr, Not, Reduce, Select, binary, const
from ansor.te.expr import cast as converted
from ansor.te.scalar import FUNCTIONS, if_then_else
from ansor.te.tensor import Read, Tensor, declared, placeholder

MOST = 100_000
"""The most nodes and stages that are read."""

LARGEST = 2**31 - 1
"""Extents have 32 bits."""

COMBINERS = ("sum", "prod", "max", "min")


def declaration_to_json(tensors: Sequence[Tensor], ops: Sequence[Tensor]) -> Json:
    """`tensors`: the arguments as a kernel takes them; `ops`: all tensors in order. Raises RecordError for attributes that are not plain values."""
    number = {id(op): k for k, op in enumerate(ops)}
    return {"stages": [_stage(op, number) for op in ops], "tensors": [number[id(tensor)] for tensor in tensors]}


def _stage(op: Tensor, number: Mapping[int, int]) -> Json:
    attrs = {name: _attribute(value, number) for name, value in op.attrs.items()}
    fields: dict[str, Json] = {"name": op.name, "dtype": op.dtype, "tag": op.tag, "attrs": attrs}
    if op.compute is None:
        return {**fields, "shape": list(op.shape), "constant": op.constant}
    body, axes = op.compute.body, (*op.compute.axes, *op.compute.reduce_axes)
    places = {id(axis): k for k, axis in enumerate(axes)}
    nodes: list[Json] = []
    _node(body.source if isinstance(body, Reduce) else body, nodes, places, number, {})
    return {
        **fields, "axes": [[axis.name, axis.extent] for axis in op.compute.axes],
        "reduce": [[axis.name, axis.start, axis.extent] for axis in op.compute.reduce_axes],
        "combiner": body.combiner if isinstance(body, Reduce) else "", "nodes": nodes,
    }  # fmt: skip


def _attribute(value: object, number: Mapping[int, int]) -> Json:
    if isinstance(value, Tensor) and id(value) in number:
        return {"stage": number[id(value)]}
    if isinstance(value, list | tuple):
        return [_attribute(item, number) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RecordError(f"asked to write a declaration with the attribute {value!r:.80}, which is not plain data; leave it out")


def _node(expr: Expr, nodes: list[Json], axes: Mapping[int, int], number: Mapping[int, int], known: dict[int, int]) -> int:
    """The number of an expression in the table; adds it if it is new."""
    if id(expr) not in known:
        children: list[Json] = [_node(child, nodes, axes, number, known) for child in expr.children]
        nodes.append([*_head(expr, axes, number), *children])
        known[id(expr)] = len(nodes) - 1
    return known[id(expr)]


def _head(expr: Expr, axes: Mapping[int, int], number: Mapping[int, int]) -> list[Json]:
    if isinstance(expr, Const):
        return ["const", expr.dtype, float(expr.value).hex() if isinstance(expr.value, float) else int(expr.value)]
    if isinstance(expr, Axis):
        return ["axis", axes[id(expr)]]
    if isinstance(expr, Read):
        return ["read", number[id(expr.tensor)]]
    if isinstance(expr, Binary):
        return [expr.op]
    if isinstance(expr, Call):
        return ["call", expr.name]
    if isinstance(expr, Cast):
        return ["cast", expr.dtype]
    return ["select"] if isinstance(expr, Select) else ["not"]


def declaration_from_json(fields: Json) -> list[Tensor]:
    """The tensors that `declaration_to_json` wrote. Raises RecordError for anything else."""
    try:
        stages, chosen = _field(fields, "stages", list), _field(fields, "tensors", list)
        ops: list[Tensor] = []
        for stage in stages:
            ops.append(_tensor(stage, ops))
        return [ops[_index(number, len(ops))] for number in chosen]
    except DeclarationError as error:
        refuse(f"its declaration is invalid: {error}")


def _field(fields: Json, name: str, wanted: type) -> list[Json]:
    value = fields.get(name) if isinstance(fields, dict) else None
    return cast("list[Json]", value) if isinstance(value, wanted) else refuse(f"the {name} of its declaration is {kind(value)}")


def _word(fields: Json, name: str) -> str:
    return str(_field(fields, name, str))


def _index(value: Json, count: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count else refuse(f"it names number {told(value)} of {count}")


def _extent(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else refuse(f"it has the extent {told(value)}")


def _tensor(stage: Json, ops: Sequence[Tensor]) -> Tensor:
    name = _word(stage, "name")
    attrs = {key: _read_attribute(value, ops) for key, value in cast("dict[str, Json]", _field(stage, "attrs", dict)).items()}
    if isinstance(stage, dict) and "nodes" not in stage:
        shape = [_extent(value) for value in _field(stage, "shape", list)]
        return placeholder(shape, _word(stage, "dtype"), name, constant=stage.get("constant") is True)
    axes = tuple(Axis(str(label), _extent(extent)) for label, extent in map(_pair(2), _field(stage, "axes", list)))
    reduced = tuple(Axis(str(label), _extent(extent), "reduce", _extent(start)) for label, start, extent in map(_pair(3), _field(stage, "reduce", list)))
    body, combiner = _expression(_field(stage, "nodes", list), (*axes, *reduced), ops), _word(stage, "combiner")
    if combiner:
        if combiner not in COMBINERS or not reduced:
            refuse(f"its stage {told(name)} combines by {told(combiner)} over {len(reduced)} axes")
        body = Reduce(combiner, body, reduced, body.dtype)
    return declared(name, axes, body, tag=_word(stage, "tag"), attrs=attrs)


def _pair(size: int) -> Callable[[Json], list[Json]]:
    return lambda value: value if isinstance(value, list) and len(value) == size else refuse(f"it has {kind(value)} for an axis")


def _read_attribute(value: Json, ops: Sequence[Tensor]) -> object:
    if isinstance(value, dict):
        return ops[_index(value.get("stage"), len(ops))]
    return [_read_attribute(item, ops) for item in value] if isinstance(value, list) else value


def _expression(table: Sequence[Json], axes: Sequence[Axis], ops: Sequence[Tensor]) -> Expr:
    if not 0 < len(table) <= MOST:
        refuse(f"it has an expression of {len(table)} nodes")
    nodes: list[Expr] = []
    for entry in table:
        if not isinstance(entry, list) or not entry or not isinstance(entry[0], str):
            refuse(f"it has {kind(entry)} for a part of an expression")
        nodes.append(_built(entry[0], entry[1:], nodes, axes, ops))
    return nodes[-1]


def _built(head: str, rest: list[Json], nodes: Sequence[Expr], axes: Sequence[Axis], ops: Sequence[Tensor]) -> Expr:
    names = {"const": 2, "axis": 1, "read": 1, "call": 1, "cast": 1, "select": 0, "not": 0, **dict.fromkeys((*ARITHMETIC, *BITWISE, *COMPARISONS, *LOGIC), 0)}
    if head not in names or len(rest) < names[head]:
        refuse(f"it has the expression {told(head)} of {len(rest)} parts")
    own, children = rest[: names[head]], [nodes[_index(number, len(nodes))] for number in rest[names[head] :]]
    if len(children) != {"const": 0, "axis": 0, "read": len(children), "call": len(children), "cast": 1, "select": 3, "not": 1}.get(head, 2):
        refuse(f"it has the expression {told(head)} of {len(children)} parts")
    if head == "const":
        return _constant(str(own[0]), own[1])
    if head == "axis":
        return axes[_index(own[0], len(axes))]
    if head == "read":
        return ops[_index(own[0], len(ops))][tuple(children)]
    if head == "call":
        if own[0] not in FUNCTIONS or not children:
            refuse(f"it calls {told(own[0])}")
        return Call(str(own[0]), tuple(children), children[0].dtype)
    if head == "cast":
        return converted(str(own[0]), children[0])
    if head == "select":
        return if_then_else(*children)
    return Not(children[0]) if head == "not" else binary(head, *children)


def _constant(dtype: str, value: Json) -> Const:
    if isinstance(value, str):
        try:
            return const(float.fromhex(value), dtype)
        except (ValueError, OverflowError):
            refuse(f"it has the number {told(value)}")
    return const(value, dtype) if isinstance(value, int) else refuse(f"it has {kind(value)} for a number")
