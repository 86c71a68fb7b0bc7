"""Computes sums of an operand ahead, which many register tiles would otherwise each recompute.

An instruction with an offset gives sum((a + offset) * b): the excess, offset * sum(b), is the same for every row. If b is in loop order in its own
buffer, a nest before the tiles computes it once per column:

    for j_0, k_0, j_1, k_1:  b_sums[j_0, j_1] += offset * b_packed[j_0, k_0, j_1, k_1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansor.codegen.tensorized import InnerProduct, inner_product
from ansor.codegen.values import mentions
from ansor.ir.columns import product
from ansor.ir.intrinsics import Intrinsic
from ansor.ir.linear import Var, of, substituted
from ansor.ir.loops import Access, Buffer, For, Loops, Node, Runs, Store, stores
from ansor.te.expr import Binary, Cast, Const

MIN_ROWS = 32  # fewer are one tile or two, which sum on the fly


def with_sums(program: Loops) -> tuple[Loops, dict[Store, Access]]:
    """The program with a nest and a buffer for every such operand; and what each store must subtract, over its own loop variables. Extents are ints."""
    found: dict[Store, Access] = {}
    body: list[Node] = []
    buffers: list[Buffer] = []
    taken = {buffer.name for buffer in (*program.arguments, *program.intermediates)}
    taken |= {store.buffer.name for _, store in stores(program.body)} | {loop.var.name for path, _ in stores(program.body) for loop in path}
    whole = {*program.arguments, *program.intermediates}
    for node in program.body:
        inside = list(stores((node,)))
        written = {store.buffer for _, store in inside}
        for path, store in inside:
            operand = _operand(path, store)
            if operand is None or operand[1].buffer in written or operand[1].buffer not in whole:
                continue
            nest, found[store] = _nest(*operand, path, taken)
            body.append(nest)
            buffers.append(found[store].buffer)
        body.append(node)
    return replace(program, body=tuple(body), intermediates=(*program.intermediates, *buffers)), found


def _operand(path: Sequence[For], store: Store) -> tuple[InnerProduct, Access, Intrinsic] | None:
    """The tile, its b, and the same instruction for an unsigned a; None if sums ahead would be wrong or do not pay."""
    inner = inner_product(path, store)
    if inner is None or not inner.intrinsic.offset or not isinstance(inner.b, Access):
        return None
    walked = _walked(inner.b)
    plain = inner.intrinsic.plain
    if plain is None or walked is None or inner.b.buffer.scope == "local" or inner.lanes not in walked or walked[-1] is not inner.group:
        return None
    columns = [var for var in walked if var not in store.reduce_vars]
    whole = all(var in walked for var in store.reduce_vars) and not any(mentions(guard.value, var) for guard in store.guards for var in store.reduce_vars)
    rows = product(loop.var.extent for loop in path if loop.kind != "reduce" and loop.var not in walked)
    return (inner, inner.b, plain) if whole and columns[-1] is inner.lanes and rows >= MIN_ROWS else None


def _walked(access: Access) -> list[Var] | None:
    """The loop of each dimension; None if a dimension is walked by none or several, or only partly."""
    found = []
    for index, extent in zip(access.index, access.buffer.shape, strict=True):
        if not index.terms and extent == 1:
            continue
        atom, coefficient = index.terms[0] if len(index.terms) == 1 else (None, 0)
        if not isinstance(atom, Var) or coefficient != 1 or index.const != 0 or atom.extent != extent:
            return None
        found.append(atom)
    return found if len(set(found)) == len(found) else None


def _nest(inner: InnerProduct, b: Access, plain: Intrinsic, path: Sequence[For], taken: set[str]) -> tuple[Node, Access]:
    name = _fresh(f"{b.buffer.name}_sums", taken)
    loops = {loop.var: loop for loop in path}
    walked = _walked(b) or []
    own = {var: Var(_fresh(f"{name}_{k}", taken), var.extent) for k, var in enumerate(walked)}
    columns = [var for var in walked if loops[var].kind != "reduce"]
    reductions = [var for var in walked if loops[var].kind == "reduce" and var is not inner.group]
    buffer = Buffer(name, tuple(var.extent for var in columns), "int32", "workspace")
    source = Access(b.buffer, tuple(substituted(index, {var: of(new) for var, new in own.items()}) for index in b.index), b.dtype)
    value = Binary("mul", Cast(Const(inner.intrinsic.offset, "uint8"), "int32"), Cast(source, "int32"), "int32")
    summed = tuple(own[var] for var in (*reductions, inner.group))
    nest: Node = Store(name, buffer, tuple(of(own[var]) for var in columns), value, "sum", 0, summed)
    nest = For(own[inner.group], "reduce", name, (nest,), intrinsic=plain)
    nest = For(own[inner.lanes], "spatial", name, (nest,), Runs(vectorized=True))
    for var in reversed(reductions):
        nest = For(own[var], "reduce", name, (nest,))
    for k, var in reversed(list(enumerate(columns[:-1]))):
        nest = For(own[var], "spatial", name, (nest,), Runs(parallel=k < 2))
    return nest, Access(buffer, tuple(of(var) for var in columns), "int32")


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
