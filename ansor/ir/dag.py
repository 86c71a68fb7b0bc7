"""A declaration, analysed: its stages in order, what they read, its cost, and a key that never changes."""

from __future__ import annotations

import hashlib
import json
import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

from ansor.errors import DeclarationError
from ansor.ir.access import producers, reduce_length
from ansor.ir.canonical import canonical
from ansor.ir.flops import flops
from ansor.support.bfloat16 import BFLOAT16, holds
from ansor.te.expr import Axis, Binary, Call, Cast, Const, Expr, Reduce, Select, is_float, substitute
from ansor.te.fold import fold, postorder, with_operands
from ansor.te.tensor import Compute, Read, Tensor

KEY_VERSION = 1


class Dag:
    """The tensors of one workload and everything they are computed from.

    Args:
        tensors: inputs and outputs, in the order a kernel takes them. Placeholders are inputs, computed tensors are outputs.
        check_reads: False leaves it to who makes programs to call `check_reads`.

    `stages` holds every tensor in topological order, under unique names that are C identifiers; `declared` holds the same tensors as given.
    """

    def __init__(self, tensors: Sequence[Tensor], *, check_reads: bool = True) -> None:
        _check_declared(tensors)
        order = topological(tensors)
        renamed = _renamed(order)
        self.declared: tuple[Tensor, ...] = tuple(order)
        self.stages: tuple[Tensor, ...] = tuple(renamed[id(tensor)] for tensor in order)
        self.tensors: tuple[Tensor, ...] = tuple(renamed[id(tensor)] for tensor in tensors)
        _check_placeholders(self.tensors, self.stages)
        if check_reads:
            self.check_reads()

    def check_reads(self) -> None:
        """Raise DeclarationError for a read that leaves its tensor, where the declaration put that off."""
        for tensor in self.declared:
            if tensor.outside:
                raise DeclarationError(tensor.outside)

    def taking(self, tensors: Sequence[Tensor]) -> Dag:
        """The same stages with other arguments, in the order a kernel takes them: tensors of `declared` or `stages`, and placeholders that no stage reads.

        Raises DeclarationError as `Dag` does, and for a computed tensor of another program.
        """
        _check_declared(tensors)
        other = copy(self)
        for cached in ("flop", "key", "reduce_length"):
            other.__dict__.pop(cached, None)
        known = {id(tensor): stage for tensor, stage in zip(self.declared + self.stages, self.stages * 2, strict=True)}
        for tensor in tensors:
            if id(tensor) not in known:
                known[id(tensor)] = stage = _unread(tensor, other.stages)
                other.declared, other.stages = (tensor, *other.declared), (stage, *other.stages)
        other.tensors = tuple(known[id(tensor)] for tensor in tensors)
        _check_placeholders(other.tensors, other.stages)
        return other

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.is_placeholder)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if not tensor.is_placeholder)

    @cached_property
    def flop(self) -> int:
        """Arithmetic operations of the whole declaration."""
        return sum(flops(tensor) for tensor in self.stages)

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits that depend on the computation only: not on names, run, machine or version."""
        text = json.dumps(self._canonical(), separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @cached_property
    def reduce_length(self) -> int:
        """The longest chain of roundings behind any output element: the lengths of sums and products along a path, added up. Maxima do not round."""
        longest: dict[str, int] = {}
        for tensor in self.stages:
            behind = max((longest[p.name] for p in producers(tensor)), default=0)
            body = tensor.compute.body if tensor.compute else None
            rounds = isinstance(body, Reduce) and body.combiner in ("sum", "prod")
            longest[tensor.name] = behind + (reduce_length(tensor) if rounds else 0) + (_long_way(body) if body is not None else 0)
        return max(1, *(longest[tensor.name] for tensor in self.outputs))

    @property
    def rounding(self) -> str:
        """"float16" if anything is computed in float16, since results are no more exact than that, whatever their dtype; "bfloat16" if anything but the last
        value of an output is rounded to it; "float64" if all floats are; else "".
        """
        computes = [tensor for tensor in self.stages if tensor.compute is not None]
        if any(_rounded_on_the_way(tensor, self) for tensor in computes):
            return BFLOAT16
        nodes = [node for tensor in computes if tensor.compute is not None for node in postorder(tensor.compute.body)]
        if any(node.dtype == "float16" and isinstance(node, Binary | Call | Cast | Reduce) for node in nodes):
            return "float16"
        return "float64" if {node.dtype for node in nodes if is_float(node.dtype)} == {"float64"} else ""

    def stage(self, name: str) -> Tensor:
        """The stage called `name`."""
        for tensor in self.stages:
            if tensor.name == name:
                return tensor
        raise DeclarationError(f"asked for stage {name!r}, which is not declared; the stages are {', '.join(t.name for t in self.stages)}")

    def _canonical(self) -> list[object]:
        number = {tensor.name: k for k, tensor in enumerate(self.stages)}
        stages: list[object] = [[list(t.shape), t.dtype, t.constant, _attributes(t), _canonical_body(t, number)] for t in self.stages]
        return [KEY_VERSION, [number[t.name] for t in self.tensors], stages]

    def __repr__(self) -> str:
        return f"Dag({', '.join(one.name for one in self.inputs)} -> {', '.join(one.name for one in self.outputs)}; {len(self.stages)} stages)"

    def __str__(self) -> str:
        lines = []
        for tensor in self.stages:
            shape = ", ".join(map(str, tensor.shape))
            if tensor.compute is None:
                lines.append(f"{tensor.name} = placeholder[{shape}] {tensor.dtype}" + (" constant" if tensor.constant else ""))
                continue
            axes = ", ".join(axis.name for axis in tensor.compute.axes)
            lines.append(f"{tensor.name}[{axes}] = {tensor.compute.body}    ({shape}) {tensor.dtype}")
        return "\n".join(lines)


def _rounded_on_the_way(tensor: Tensor, dag: Dag) -> bool:
    """Whether a stage rounds to bfloat16 what is computed with afterwards."""
    assert tensor.compute is not None
    rounded = [node for node in postorder(tensor.compute.body) if isinstance(node, Cast) and node.dtype == BFLOAT16 and not _is_exact(node.value)]
    last = len(rounded) == 1 and rounded[0] is tensor.compute.body and not any(tensor in producers(other) for other in dag.stages)
    return bool(rounded) and not last


def _is_exact(value: Expr) -> bool:
    """Whether a value is a bfloat16 already: one that was read, or one of several, as in padding."""
    if isinstance(value, Select):
        return _is_exact(value.then) and _is_exact(value.otherwise)
    if isinstance(value, Binary) and value.op in ("min", "max"):
        return _is_exact(value.left) and _is_exact(value.right)
    return holds(float(value.value)) if isinstance(value, Const) else isinstance(value, Cast) and value.value.dtype == BFLOAT16


DEEP = 100
"""Up to this depth, the roundings of nested operations need not be counted."""


def _long_way(body: Expr) -> int:
    """The longest chain of operations in a body; 0 if it is no longer than `DEEP`."""
    depth = fold(body, lambda _, depths: 1 + max(depths, default=0))
    return depth if depth > DEEP else 0


def _check_declared(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise DeclarationError(f"a workload is a list of tensors, found a {type(tensor).__name__}; return [inputs..., outputs...]")
    if len({id(tensor) for tensor in tensors}) != len(tensors):
        raise DeclarationError("a workload lists one tensor twice; list each input and output once")
    if all(tensor.is_placeholder for tensor in tensors):
        raise DeclarationError(f"a workload needs a computed tensor, found only {[t.name for t in tensors]}; add the result of te.compute to the list")


def _check_placeholders(tensors: tuple[Tensor, ...], stages: tuple[Tensor, ...]) -> None:
    listed = {tensor.name for tensor in tensors}
    missing = [tensor.name for tensor in stages if tensor.is_placeholder and tensor.name not in listed]
    if missing:
        raise DeclarationError(f"the workload reads placeholder {missing[0]}, which it does not list; add it to the list of tensors")


def topological(tensors: Sequence[Tensor]) -> list[Tensor]:
    """These tensors and all that they depend on, each after the tensors that it reads."""
    order: list[Tensor] = []
    seen: set[int] = set()
    for root in tensors:
        stack: list[tuple[Tensor, bool]] = [(root, False)]
        while stack:
            tensor, ready = stack.pop()
            if ready:
                order.append(tensor)
            elif id(tensor) not in seen:
                seen.add(id(tensor))
                stack.append((tensor, True))
                stack.extend((producer, False) for producer in reversed(producers(tensor)) if id(producer) not in seen)
    return order


RESERVED = {"int", "long", "float", "double", "char", "short", "void", "for", "while", "if", "else", "return", "static", "const", "restrict", "inline",
            "signed", "unsigned", "struct", "union", "enum", "switch", "case", "default", "do", "goto", "sizeof", "auto", "register", "volatile", "break",
            "continue", "extern", "typedef", "asm", "typeof", "args", "workspace", "pool", "parallel_for", "task", "main", "exp", "log", "log2", "pow", "sin",
            "cos", "tanh", "sqrt", "erf", "floor", "ceil", "round", "rint", "trunc", "fabs", "abs", "max", "min", "y0", "y1", "j0", "j1", "div", "index",
            "exp2", "exp10", "log10", "log1p", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "fmod", "hypot", "copysign",
            "nextafter", "time", "ctx", "begin", "end", "NAN", "INFINITY", "NULL", "math_errhandling", "linux", "unix"}
# Float versions of the functions above, helpers and vector types of generated code (max_f32, f32x8), macros of math.h and of compilers.
_RESERVED_SHAPES = re.compile(
    r"(exp2?|log(2|10|1p)?|pow|a?(sin|cos|tan)h?|atan2|sqrt|erf|floor|ceil|rint|round|trunc|fabs|fmod|hypot|copysign|nextafter)f|(\w+_)?[fiu](8|16|32|64)(x\d+)?|(HUGE|M|FP|MATH)_\w+|ansor_\w+|ANSOR_\w+|_[A-Z_]\w*"
)


def c_identifier(name: str) -> str:
    """`name` as a valid C identifier that does not clash with the names that generated C uses."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII) or "t"
    if text[0].isdigit() or text in RESERVED or keyword.iskeyword(text) or _RESERVED_SHAPES.fullmatch(text):
        text = f"t_{text}_" if _RESERVED_SHAPES.fullmatch(f"t_{text}") else f"t_{text}"
    return text


def tidy_identifier(name: str) -> str:
    """`name` as a C identifier for people and file names: runs of other characters and of `_` become one `_`, and none is at the end."""
    return c_identifier(re.sub(r"[\W_]+", "_", name, flags=re.ASCII).rstrip("_"))


def _renamed(order: Sequence[Tensor]) -> dict[int, Tensor]:
    taken: set[str] = set()
    renamed: dict[int, Tensor] = {}
    for tensor in order:
        name = _free_name(tensor.name, taken)
        taken.add(name)
        compute, attrs = _apart(_reading(tensor.compute, renamed), tensor.attrs)
        renamed[id(tensor)] = Tensor(name, tensor.shape, tensor.dtype, compute, tensor.constant, tensor.tag, attrs)
    return renamed


def _unread(tensor: Tensor, stages: Sequence[Tensor]) -> Tensor:
    """An argument that no stage reads, under a free name."""
    if not tensor.is_placeholder:
        names = ", ".join(stage.name for stage in stages)
        raise DeclarationError(f"asked for the argument {tensor.name}, which is not a tensor of this program; its tensors are {names}")
    return replace(tensor, name=_free_name(tensor.name, {stage.name for stage in stages}))


def _free_name(name: str, taken: Collection[str]) -> str:
    base = candidate = c_identifier(name)
    count = 1
    while candidate in taken:
        candidate, count = f"{base}_{count}", count + 1
    return candidate


def _reading(compute: Compute | None, renamed: dict[int, Tensor]) -> Compute | None:
    if compute is None:
        return None

    def read(node: Expr, operands: tuple[Expr, ...]) -> Expr:
        return Read(renamed[id(node.tensor)], operands, node.dtype) if isinstance(node, Read) else with_operands(node, operands)

    return Compute(compute.axes, compute.reduce_axes, fold(compute.body, read))


def _apart(compute: Compute | None, attrs: Mapping[str, object]) -> tuple[Compute | None, Mapping[str, object]]:
    """Renames axes whose name a split or fused axis would also get, such as `i_0` beside `i`. Attributes follow."""
    names = [axis.name for axis in compute.axes + compute.reduce_axes] if compute else []
    fresh: dict[str, str] = {}
    for name in names:
        if not any(_is_part(name, other) for other in names):
            continue
        candidate = name.replace("_", "")
        while any(candidate == other or _is_part(candidate, other) or _is_part(other, candidate) for other in (*names, *fresh.values()) if other != name):
            candidate += "x"
        fresh[name] = candidate
    if compute is None or not fresh:
        return compute, attrs
    axes, reduce_axes = (tuple(replace(axis, name=fresh.get(axis.name, axis.name)) for axis in group) for group in (compute.axes, compute.reduce_axes))
    moved: dict[Axis, Expr] = dict(zip(compute.axes + compute.reduce_axes, axes + reduce_axes, strict=True))
    source = substitute(compute.body.source if isinstance(compute.body, Reduce) else compute.body, moved)
    body = Reduce(compute.body.combiner, source, reduce_axes, source.dtype) if isinstance(compute.body, Reduce) else source
    return Compute(axes, reduce_axes, body), {key: _with_names(value, fresh) for key, value in attrs.items()}


def _is_part(name: str, whole: str) -> bool:
    """True for a name that splitting or fusing may give to a part of the loop `whole`."""
    return re.fullmatch(re.escape(whole) + r"_(\w*_f|[\d_]+)", name) is not None


def _with_names(value: object, fresh: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return fresh.get(value, value)
    return type(value)(fresh.get(item, item) if isinstance(item, str) else item for item in value) if isinstance(value, (list, tuple)) else value


def _attributes(tensor: Tensor) -> list[list[object]]:
    """The attributes that can change the search: those with plain values."""
    return [[name, value] for name, value in sorted(tensor.attrs.items()) if _is_plain(value)]


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item) for item in value)
    return isinstance(value, (str, int, float, bool))


def _canonical_body(tensor: Tensor, number: dict[str, int]) -> object:
    if tensor.compute is None:
        return None
    axes = {id(axis): k for k, axis in enumerate(tensor.compute.axes + tensor.compute.reduce_axes)}
    extents = [[axis.start, axis.extent] for axis in tensor.compute.reduce_axes]
    return [extents, canonical(tensor.compute.body, axes, number)]
