"""Register tiles whose innermost part is an instruction: the C text of its operands, and of the tile around it.

A tile is text for three places: before its reduction loops, inside them, after them. Pieces at the end of a row that are
narrower than any form of the instruction use plain arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ansor.codegen.dialect import C_TYPES, Helpers, literal, vector_type
from ansor.codegen.values import Lanes, Writer, combined, depends, mentions
from ansor.ir.intrinsics import Intrinsic
from ansor.ir.linear import Var
from ansor.ir.loops import Access, For, Store
from ansor.support.bfloat16 import BFLOAT16
from ansor.te.dtypes import BYTES
from ansor.te.expr import Binary, Cast, Expr, Select

Place = tuple[dict[Var, int], Lanes | None]


@dataclass(frozen=True)
class InnerProduct:
    """A store as an instruction sees it: `a` has one group for all lanes, `b` one per lane; `loop` runs over a group, `lanes` over the lanes.

    sums: the place of what an offset adds to a whole sum, if computed ahead.
    """

    intrinsic: Intrinsic
    a: Expr
    b: Expr
    loop: For
    lanes: Var
    sums: Access | None = None

    @property
    def group(self) -> Var:
        """The variable of a group."""
        return self.loop.var


@dataclass(frozen=True)
class TileText:
    """Lines before, inside and after the reduction loops of a tile."""

    before: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def inner_product(loops: Sequence[For], store: Store) -> InnerProduct | None:
    """The innermost part of a nest as an instruction, if a schedule requests it and simplification left it in place; None for plain code."""
    intrinsic = loops[-1].intrinsic if loops else None
    if intrinsic is None or len(loops) < 2 or store.combiner != "sum" or store.buffer.dtype != intrinsic.result:
        return None
    group, lanes, value = loops[-1].var, loops[-2], store.value
    if group.extent != intrinsic.group or not lanes.vectorized or lanes.kind == "reduce" or not isinstance(value, Binary) or value.op != "mul":
        return None
    if not (isinstance(value.left, Cast) and isinstance(value.right, Cast)) or any(mentions(guard.value, group) for guard in store.guards):
        return None  # a guard that changes inside a group cannot be kept, as for blocks that do not divide the reduction
    for a, b in ((value.left.value, value.right.value), (value.right.value, value.left.value)):
        if (a.dtype, b.dtype) == intrinsic.operands and not depends(a, lanes.var):
            return InnerProduct(intrinsic, a, b, loops[-1], lanes.var)
    return None


def tile_text(inner: InnerProduct, places: Sequence[Place], names: Sequence[str], writer: Writer, store: Store, before: Sequence[Var] = ()) -> TileText:
    """One instruction for every accumulator `names[k]` at `places[k]`; shared operands are loaded once. `names` are also the stems of new names.

    before: the reduction loops around the tile, across which results are stored and reloaded.
    """
    text = _Tile(inner, writer, store, names[0]).text(places, names)
    if inner.sums is None or not before or not text.after:
        return text
    last = " && ".join(f"{var.name} == {int(var.extent) - 1}" for var in before)  # sums of the whole reduction are subtracted once
    return TileText(text.before, text.inside, [f"if ({last}) {{", *text.after, "}"])


class _Tile:
    def __init__(self, inner: InnerProduct, writer: Writer, store: Store, stem: str) -> None:
        self.inner, self.writer, self.store, self.stem = inner, writer, store, stem
        self.helpers = writer.helpers
        self.lines = TileText()
        self.loaded: dict[str, str] = {}
        self.offsets: dict[str, str] = {}
        self.signs: dict[int, str] = {}

    def text(self, places: Sequence[Place], names: Sequence[str]) -> TileText:
        alone: dict[str, tuple[str, Writer]] = {}  # by their multiplicand: the first of two rows
        for name, (fixed, lanes) in zip(names, places, strict=True):
            writer = self.writer.at(fixed, lanes)
            count = writer.lanes.count if writer.lanes is not None else 1
            if count in self.inner.intrinsic.lanes and self.inner.intrinsic.rows > 1:
                columns = _columns(self.inner, writer, count // 2)
                if columns in alone:
                    self._block(alone.pop(columns), (name, writer))
                else:
                    alone[columns] = name, writer
            elif count in self.inner.intrinsic.lanes:
                self._product(name, writer, count)
            else:
                self._written_out(name, writer, count)
        for one in alone.values():
            self._block(one, None)
        return self.lines

    def _block(self, first: tuple[str, Writer], second: tuple[str, Writer] | None) -> None:
        """Two rows of four results, as two blocks of two columns for the instructions. Without a second row, the first is used twice."""
        (name, writer), (other, below) = first, second or first
        call, kind = dot_function(self.helpers, self.inner.intrinsic, 4), self.helpers.vector("int32", 4)
        a = self._load(_two_groups(self.inner, writer, below), 4)
        for part, picked in enumerate(((0, 1, 4, 5), (2, 3, 6, 7))):
            assert writer.lanes is not None
            half = writer.at({}, replace(writer.lanes, count=2, start=writer.lanes.start + 2 * part))
            b = self._load(_columns(self.inner, half, 2), 4)
            self.lines.before.append(f"{kind} {name}_{part} = {self.helpers.shuffle('int32', 4, name, other, picked)};")
            self.lines.inside.append(f"{name}_{part} = {call}({name}_{part}, {a}, {b});")
        for result, picked in ((name, (0, 1, 4, 5)), *(((other, (2, 3, 6, 7)),) if second else ())):
            self.lines.after.append(f"{result} = {self.helpers.shuffle('int32', 4, f'{name}_0', f'{name}_1', picked)};")

    def _product(self, name: str, writer: Writer, count: int) -> None:
        call = dot_function(self.helpers, self.inner.intrinsic, count)
        columns = _columns(self.inner, writer, count)
        b = self._load(columns, count)
        if self.inner.intrinsic.offset and self.inner.sums is None and b not in self.offsets:
            # Every element of a is too large by the offset: the excess is summed separately, once for all rows of the tile.
            kind, offset = self.helpers.vector("int32", count), f"{self.stem}_offset{len(self.offsets)}"
            self.offsets[b] = offset
            self.lines.before.append(f"{kind} {offset} = ({kind}){{}};")
            self.lines.inside.append(f"{offset} = {call}({offset}, {self._sign(count)}, {b});")
        sign = self._sign(count) if self.inner.intrinsic.offset else ""
        a = self._load(_group(self.inner, writer, count, sign), count)
        self.lines.inside.append(f"{name} = {call}({name}, {a}, {b});")
        if self.inner.intrinsic.offset:
            added = self.offsets[b] if self.inner.sums is None else writer.vector(self.inner.sums)
            self.lines.after.append(f"{name} = {_difference(self.helpers, count)}({name}, {added});")

    def _sign(self, count: int) -> str:
        """The offset in every byte, in a variable whose value is hidden from the compiler.

        Otherwise it would flip the signs of a group before broadcasting it: three instructions where one loads, broadcasts and flips.
        """
        if count not in self.signs:
            name = self.signs[count] = f"{self.stem}_sign{count}"
            self.lines.before.append(f"{self.helpers.vector('int32', count)} {name} = {_all(self.helpers, self.inner.intrinsic.offset, count)};")
            self.lines.before.append(f"{dot_function(self.helpers, self.inner.intrinsic, count)}_hide({name});")
        return self.signs[count]

    def _load(self, text: str, count: int) -> str:
        if text not in self.loaded:
            self.loaded[text] = f"{self.stem}_in{len(self.loaded)}"
            self.lines.inside.append(f"const {_operand(self.helpers, self.inner.intrinsic, count)} {self.loaded[text]} = {text};")
        return self.loaded[text]

    def _written_out(self, name: str, writer: Writer, count: int) -> None:
        for k in range(int(self.inner.group.extent)):
            one = writer.at({self.inner.group: k}, writer.lanes)
            value = one.vector(self.store.value) if one.lanes is not None else one.scalar(self.store.value)
            wraps = self.helpers.ranges.reduction_may_wrap(self.store)
            self.lines.inside.append(f"{name} = {combined(self.helpers, 'sum', self.inner.intrinsic.result, count, name, value, wraps)};")


# operands -------------------------------------------------------------------------------------------------------------------------------------------------


def _group(inner: InnerProduct, writer: Writer, count: int, sign: str) -> str:
    """One group of `a` in every lane; `sign`: what to xor the bytes with for the instruction."""
    helpers, intrinsic, dtype = writer.helpers, inner.intrinsic, inner.a.dtype
    if count == 1:
        return _group_number(inner, writer.at({inner.group: 0}, None), inner.a, _operand(helpers, intrinsic, count))
    number = _as_wide(dtype, intrinsic.group)
    one = _group_number(inner, writer.at({inner.group: 0}, None), inner.a, C_TYPES[number])
    text = f"({one} + ({helpers.vector(number, count)}){{}})"
    if sign:
        return f"({text} ^ {sign})"
    return _widened(helpers, intrinsic, dtype, text, count)


def _two_groups(inner: InnerProduct, first: Writer, second: Writer) -> str:
    """A group of `a` of one row, followed by that of another."""
    helpers, expr, size = first.helpers, inner.a, inner.intrinsic.group
    kind, bytes_ = helpers.vector("int32", 4), helpers.vector(expr.dtype, 2 * size)
    one, other = first.at({inner.group: 0}, None), second.at({inner.group: 0}, None)
    if isinstance(expr, Access) and memory_step(expr, inner.group) == 1:
        start, behind = (at.flat(expr.buffer, expr.index) for at in (one, other))
        if start.terms == behind.terms and behind.const - start.const == size:
            return f"({kind})*(const {bytes_} *)&{expr.buffer.name}[{one.index(start)}]"
    numbers = (_group_number(inner, at, expr, C_TYPES["int64"]) for at in (one, other))
    return f"({kind})({helpers.vector('int64', 2)}){{{', '.join(numbers)}}}"


def _group_number(inner: InnerProduct, writer: Writer, expr: Expr, kind: str) -> str:
    """The elements of a group packed into one number."""
    helpers, size = writer.helpers, inner.intrinsic.group
    bytes_ = helpers.vector(expr.dtype, size)
    if isinstance(expr, Access) and memory_step(expr, inner.group) == 1:
        return f"({kind})*(const {bytes_} *)&{expr.buffer.name}[{writer.index(writer.flat(expr.buffer, expr.index))}]"
    if isinstance(expr, Select) and not depends(expr.condition, inner.group):
        then, otherwise = (_group_number(inner, writer, side, kind) for side in (expr.then, expr.otherwise))
        return f"({kind})({writer.scalar(expr.condition)} ? {then} : {otherwise})"
    elements = [writer.at({inner.group: k}, None).scalar(expr) for k in range(size)]
    return f"({kind})({bytes_}){{{', '.join(elements)}}}"


def memory_step(access: Access, var: Var) -> int | None:
    """Elements between the reads of neighbouring iterations of `var`; None if that varies."""
    total = 0
    for index, stride in zip(access.index, access.buffer.strides, strict=True):
        plain = sum(int(c) for atom, c in index.terms if atom is var)
        if depends(Access(access.buffer, (index.kept(lambda atom: atom is not var),), access.dtype), var):
            return None
        total += plain * int(stride)
    return total


def _columns(inner: InnerProduct, writer: Writer, count: int) -> str:
    """A group of `b` in each lane."""
    helpers, intrinsic, expr = writer.helpers, inner.intrinsic, inner.b
    if count == 1:
        return _group_number(inner, writer.at({inner.group: 0}, None), expr, _operand(helpers, intrinsic, count))
    assert writer.lanes is not None
    size, start = intrinsic.group, int(writer.lanes.start.const)
    bytes_ = helpers.vector(expr.dtype, count * size)
    first = writer.at({inner.group: 0, inner.lanes: start}, None)

    def element(lane: int, k: int) -> str:
        return first.at({inner.group: k, inner.lanes: start + lane}, None).scalar(expr)

    if isinstance(expr, Access):
        lane, step = memory_step(expr, inner.lanes), memory_step(expr, inner.group)
        place = f"{expr.buffer.name}[{first.index(first.flat(expr.buffer, expr.index))}]"
        if step == 1 and lane == size:
            return _widened(helpers, intrinsic, expr.dtype, f"*(const {bytes_} *)&{place}", count)
        if step == 1 and lane is not None:
            number = _as_wide(expr.dtype, size)
            kind = helpers.vector(expr.dtype, size)
            groups = (f"({C_TYPES[number]})*(const {kind} *)&{element(k, 0)}" for k in range(count))
            return _widened(helpers, intrinsic, expr.dtype, f"({helpers.vector(number, count)}){{{', '.join(groups)}}}", count)
        if step is not None and lane == 1:
            row = helpers.vector(expr.dtype, count)
            rows = (f"*(const {row} *)&{element(0, k)}" for k in range(size))
            return _widened(helpers, intrinsic, expr.dtype, f"{interleaved_function(helpers, expr.dtype, count, size)}({', '.join(rows)})", count)
    elements = (element(lane, k) for lane in range(count) for k in range(size))
    return _widened(helpers, intrinsic, expr.dtype, f"({bytes_}){{{', '.join(elements)}}}", count)


def _widened(helpers: Helpers, intrinsic: Intrinsic, dtype: str, text: str, count: int) -> str:
    """Groups of bytes as the instruction's operands, in 32-bit lanes."""
    lanes = helpers.vector("int32", count * intrinsic.group * (2 if intrinsic.widened else BYTES[dtype]) // 4)
    if not intrinsic.widened:
        return f"({lanes}){text}"
    pairs, wide = helpers.vector(dtype, count * intrinsic.group), helpers.vector("int16", count * intrinsic.group)
    return f"({lanes})__builtin_convertvector(({pairs}){text}, {wide})"


def _as_wide(dtype: str, group: int) -> str:
    """The integer type as wide as a group."""
    return {2: "int16", 4: "int32", 8: "int64"}[group * BYTES[dtype]]


def _all(helpers: Helpers, value: int, count: int) -> str:
    """The same unsigned byte everywhere."""
    number = int.from_bytes(bytes([value] * 4), "little", signed=True)
    return f"({literal(number, 'int32')} + ({helpers.vector('int32', count)}){{}})"


def _register(helpers: Helpers, count: int, dtype: str = "int32") -> str:
    """The type for `count` lanes: one is a number in a general register."""
    return helpers.vector(dtype, count) if count > 1 else C_TYPES[dtype]


def _operand(helpers: Helpers, intrinsic: Intrinsic, count: int) -> str:
    """The type of a group for each of `count` lanes: that of the lanes, or a vector if a single lane's group is one."""
    size = 2 * intrinsic.group if intrinsic.widened else intrinsic.group * BYTES[intrinsic.operands[0]]
    return helpers.vector("int32", size // 4) if count == 1 and size > 4 else _register(helpers, count)


# helpers --------------------------------------------------------------------------------------------------------------------------------------------------


def dot_function(helpers: Helpers, intrinsic: Intrinsic, count: int) -> str:
    """The name of the instruction in C; plain arithmetic if the compiler does not have it for the processor."""
    name = f"{intrinsic.name}_{count}"
    kind, size = _register(helpers, count, intrinsic.result), intrinsic.group
    a, b = intrinsic.operands
    left, right = ("int16", "int16") if intrinsic.widened else ("uint8" if intrinsic.offset else a, b)
    x, y = (helpers.vector(dtype, count * size) for dtype in (left, right))
    product = f"(({x})a)[l * {size} + q] * (({y})b)[l * {size} + q]"
    if intrinsic.rows > 1:  # lanes are the results of both rows
        x, y = (helpers.vector(dtype, 2 * size) for dtype in (a, b))
        product = f"(({x})a)[l / 2 * {size} + q] * (({y})b)[l % 2 * {size} + q]"
    one, operand = "acc[l]" if count > 1 else "acc", _operand(helpers, intrinsic, count)
    body = (f"for (int l = 0; l < {count}; ++l) for (int q = 0; q < {size}; ++q) "
            f"{one} = (int)((unsigned){one} + (unsigned)({product})); return acc;")  # fmt: skip
    if a == BFLOAT16:
        body = _plain_pairs(helpers, count)
    plain = f"static inline {kind} {name}_plain({kind} acc, {operand} a, {operand} b) {{ {body} }}"
    macro = f"ANSOR_{name}"
    header = [f"#include <{intrinsic.c.header}>"] if intrinsic.c.header else []
    there = [*header, f"#define {macro}(acc, a, b) ({kind}){intrinsic.text(count)}"]
    missing = [plain, f"#define {macro}(acc, a, b) {name}_plain(acc, a, b)"]
    if intrinsic.offset:
        there.append(f'#define {macro}_hide(x) __asm__("" : "+v"(x))')
        missing.append(f"#define {macro}_hide(x)")
    helpers.instructions.setdefault(macro, "\n".join([f"#if {intrinsic.c.macro}", *there, "#else", *missing, "#endif"]))
    return macro


def _plain_pairs(helpers: Helpers, count: int) -> str:
    """Products of pairs of bfloat16, the first of which is in the lower half of a lane, in float32."""
    wide, bits = helpers.vector("float32", count), helpers.vector("uint32", count)
    lower = f"({wide})(({bits})a << 16) * ({wide})(({bits})b << 16)"
    upper = f"({wide})(({bits})a & 0xffff0000u) * ({wide})(({bits})b & 0xffff0000u)"
    return f"return acc + {lower} + {upper};"


def _difference(helpers: Helpers, count: int) -> str:
    """The name of wrapping subtraction."""
    kind, name = helpers.vector("int32", count), f"less_{vector_type('int32', count)}"
    unsigned = helpers.vector("uint32", count)
    helpers.functions.setdefault(name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return ({kind})(({unsigned})a - ({unsigned})b); }}")
    return name


def interleaved_function(helpers: Helpers, dtype: str, count: int, size: int) -> str:
    """The name of a function from `size` rows to groups: rows[0][0], rows[1][0], ..., rows[0][1], ..."""
    row, all_ = helpers.vector(dtype, count), helpers.vector(dtype, count * size)
    name = f"interleaved{size}_{row}"
    order = ", ".join(f"{k}, {k + count}" for k in range(count))
    if size == 2:
        body = f"return ({all_})__builtin_shufflevector(a, b, {order});"
        parameters = f"{row} a, {row} b"
    elif size == 8:
        half, quarter = interleaved_function(helpers, dtype, count, 4), helpers.vector("int32", count)
        body = (f"{quarter} x = ({quarter}){half}(a, b, c, d), y = ({quarter}){half}(e, f, g, h); "
                f"return ({all_})__builtin_shufflevector(x, y, {order});")
        parameters = ", ".join(f"{row} {one}" for one in "abcdefgh")
    else:
        pair = helpers.vector("int16", count)
        body = (f"{pair} x = ({pair})__builtin_shufflevector(a, b, {order}), y = ({pair})__builtin_shufflevector(c, d, {order}); "
                f"return ({all_})__builtin_shufflevector(x, y, {order});")
        parameters = f"{row} a, {row} b, {row} c, {row} d"
    helpers.functions.setdefault(name, f"static inline {all_} {name}({parameters}) {{ {body} }}")
    return name
