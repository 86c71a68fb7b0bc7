"""Loop nests as indented text that a person can read."""

from __future__ import annotations

import numpy as np

from ansor.ir.columns import Int
from ansor.ir.linear import Linear, Opaque, Quotient, Remainder, Var
from ansor.ir.loops import Access, Buffer, Guard, IndexValue, Loops, Node, Store
from ansor.te.expr import LONGEST, SYMBOLS, Binary, Call, Cast, Const, Expr, Not, Select
from ansor.te.fold import fold

COMBINERS = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min="}


def number_text(value: Int) -> str:
    """A number, or the range a population takes."""
    if not isinstance(value, np.ndarray):
        return str(value)
    low, high = int(value.min()), int(value.max())
    return str(low) if low == high else f"{low}..{high}"


def linear_text(linear: Linear) -> str:
    """An index: `i_0 * 16 + i_1 + 1`."""
    parts = [f"{_atom_text(atom)} * {number_text(c)}" if not (isinstance(c, int) and c == 1) else _atom_text(atom) for atom, c in linear.terms]
    if isinstance(linear.const, np.ndarray) or linear.const != 0 or not parts:
        parts.append(number_text(linear.const))
    return " + ".join(parts)


def _atom_text(atom: object) -> str:
    if isinstance(atom, Var):
        return atom.name
    if isinstance(atom, Quotient):
        return f"({linear_text(atom.value)}) // {number_text(atom.divisor)}"
    if isinstance(atom, Remainder):
        return f"({linear_text(atom.value)}) % {number_text(atom.divisor)}"
    assert isinstance(atom, Opaque)
    return value_text(atom.value)


def value_text(expr: Expr) -> str:
    """A value over buffers; `...` stands for parts that are too long to read."""
    return fold(expr, lambda node, parts: _node_text(node, [part if len(part) <= LONGEST else "..." for part in parts]))


def _node_text(expr: Expr, parts: list[str]) -> str:
    if isinstance(expr, Const):
        return str(expr.value)
    if isinstance(expr, IndexValue):
        return f"({linear_text(expr.value)})"
    if isinstance(expr, Access):
        return f"{expr.buffer.name}[{', '.join(map(linear_text, expr.index))}]"
    if isinstance(expr, Binary):
        return f"({parts[0]} {SYMBOLS[expr.op]} {parts[1]})" if expr.op in SYMBOLS else f"{expr.op}({parts[0]}, {parts[1]})"
    if isinstance(expr, Not):
        return f"(not {parts[0]})"
    if isinstance(expr, Call):
        return f"{expr.name}({', '.join(parts)})"
    if isinstance(expr, Select):
        return f"select({', '.join(parts)})"
    if isinstance(expr, Cast):
        return f"{expr.dtype}({parts[0]})"
    return str(expr)


def loops_text(loops: Loops) -> str:
    """The whole program."""
    lines = [_buffer_text(b) + (" packed" if b.pack else "") for b in (*loops.arguments, *loops.intermediates)]
    for node in loops.body:
        lines += _node_lines(node, 0)
    return "\n".join(lines)


def _buffer_text(buffer: Buffer) -> str:
    return f"{buffer.name}: {buffer.dtype}[{', '.join(map(number_text, buffer.shape))}] {buffer.scope}"


def _node_lines(node: Node, depth: int) -> list[str]:
    indent = "  " * depth
    if isinstance(node, Store):
        return [indent + _guard_text(node.guards) + _store_text(node)]
    flags = [word for word, flag in (("parallel", node.parallel), ("vectorized", node.vectorized), ("unrolled", node.unrolled)) if np.any(flag)]
    head = f"{indent}{' '.join([*flags, 'for'])} {node.var.name} in {number_text(node.var.extent)}"
    head += f"  (unroll up to {number_text(node.unroll_limit)})" if np.any(node.unroll_limit) and node.kind == "reduce" else ""
    head += f"  ({node.intrinsic})" if node.intrinsic else ""
    lines = [head]
    lines += [f"{indent}  {_buffer_text(b)}" for b in node.locals]
    for inner in node.body:
        lines += _node_lines(inner, depth + 1)
    return lines


def _guard_text(guards: tuple[Guard, ...]) -> str:
    tests = []
    for guard in guards:
        low = f"{number_text(guard.low)} <= " if guard.low is not None else ""
        high = f" < {number_text(guard.high)}" if guard.high is not None else ""
        tests.append(f"{low}{linear_text(guard.value)}{high}")
    return f"if {' and '.join(tests)}: " if tests else ""


def _store_text(store: Store) -> str:
    target = f"{store.buffer.name}[{', '.join(map(linear_text, store.index))}]"
    return f"{target} {COMBINERS[store.combiner] if store.combiner else '='} {value_text(store.value)}"
