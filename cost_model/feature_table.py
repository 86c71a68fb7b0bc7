"""The features of a statement: name, unit and meaning of every column, in order. Start here to read a feature row.

The first 164 and their order are those of Ansor (auto_scheduler of TVM 0.9): 57 for the statement, five blocks of 18 for the buffers it touches, 10 points
of arithmetic intensity, 4 for the memory it stores to and 3 for the loops around it. Numbers are stored as log2(1 + x), so that products become sums;
columns marked `plain` are stored as they are. Ansor's errors there (fused multiply-adds never seen, positions never set, lines of the wrong loop)
are corrected to what the names say. The last 30 are our own: parts of the analytic estimate, and the machine.

Words used below. *Iterations*: product of the extents of all loops around the statement; conditions around it are assumed true. A *real* loop
has an extent above 1; others never count. A loop *indexes* a buffer when the address read or written moves with it. *Touched*: distinct elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FEATURES_VERSION = 8
"""Incremented whenever a column changes its place or meaning: models are trained for one version."""

BUFFER_BLOCKS = 5
CURVE_POINTS = 10


@dataclass(frozen=True, slots=True)
class Feature:
    """One column. unit: what is counted; plain: stored as is, not as log2(1 + x)."""

    name: str
    unit: str
    comment: str
    plain: bool = False


_OPERATIONS = (
    ("mad", "multiplications that an addition or subtraction takes up at once (a * b + c), also those of a sum"),
    ("addsub", "other additions and subtractions, also those of a sum"),
    ("mul", "other multiplications, also those of a product"),
    ("divmod", "divisions and remainders"),
    ("cmp", "comparisons, minima and maxima, also those of a reduction"),
    ("mathfunc", "functions that take many instructions: exp, log, tanh, pow, sqrt, ..."),
    ("otherfunc", "roundings, absolute values and conversions"),
)
_INTEGER = {
    "addsub": "; index arithmetic inside the value too",
    "mul": "; index arithmetic inside the value too",
    "divmod": "; those of fused loops in any index too, as often as their operands change",
    "cmp": "; 1 more where conditions surround the statement",
}
POSITIONS = (
    ("none", "no such loop"),
    ("inner_spatial", "it walks the last stored dimension of its stage"),
    ("middle_spatial", "it walks a dimension in between"),
    ("outer_spatial", "it walks the first stored dimension of its stage"),
    ("inner_reduce", "it is the innermost real reduction loop of its stage"),
    ("middle_reduce", "it is a reduction loop in between"),
    ("outer_reduce", "it is the outermost real reduction loop of its stage"),
    ("mixed", "there are several in different places, or one that walks several dimensions"),
)
ANNOTATIONS = (("vec", "vectorised"), ("unroll", "explicitly unrolled"), ("parallel", "parallel"))
REUSE_TYPES = (
    ("loop", "the innermost real loop that does not index it repeats the access; only loops inside its allocation"),
    ("serial", "another statement touches it, in a loop further in than any that repeats the access (the program counts as a loop of one iteration)"),
    ("none", "neither"),
)


def _operations() -> Iterator[Feature]:
    for kind in ("float", "int"):
        for name, what in _OPERATIONS:
            extra = _INTEGER.get(name, "") if kind == "int" else ""
            yield Feature(f"{kind}_{name}", "operations", f"{what}{extra}; in the stored value, times iterations")
    yield Feature("bool_op", "operations", "and, or, not; times iterations")
    yield Feature("select_op", "operations", "choices between two values, both counted unless the code of an unrolled loop has but one; times iterations")


def _annotations() -> Iterator[Feature]:
    for name, word in ANNOTATIONS:
        yield Feature(f"{name}_num", "loops", f"real {word} loops around the statement")
        yield Feature(f"{name}_prod", "iterations", "product of their extents, 0 without any")
        yield Feature(f"{name}_len", "iterations", "extent of the innermost, 0 without any")
        for position, where in POSITIONS:
            yield Feature(f"{name}_type_{position}", "0 or 1", f"position of the {word} loop: {where}", plain=True)


def _device() -> Iterator[Feature]:
    yield Feature("is_gpu", "0 or 1", "kept for the order of columns; always 0", plain=True)
    for name in ("blockIdx_x", "blockIdx_y", "blockIdx_z", "threadIdx_x", "threadIdx_y", "threadIdx_z", "vthread"):
        yield Feature(f"{name}_len", "iterations", "kept for the order of columns; always 1")


def _buffer(k: int) -> Iterator[Feature]:
    """Block 0 is the stored buffer; then those read, in order of first read. Of more than five, those with the most loops in their index are kept."""
    for access in ("read", "write", "readwrite"):
        yield Feature(f"B{k}.acc_{access}", "0 or 1", "kind of access", plain=True)
    yield Feature(f"B{k}.bytes", "bytes", "moved if nothing were reused: iterations * element size * different places read or written in an iteration")
    yield Feature(f"B{k}.unique_bytes", "bytes", "touched over all loops")
    yield Feature(f"B{k}.lines", "cache lines", "visited: lines of a run of the innermost real loop that indexes it, times iterations outside that loop")
    yield Feature(f"B{k}.unique_lines", "cache lines", "touched over all loops, rows taken to start at a line")
    for kind, what in REUSE_TYPES:
        yield Feature(f"B{k}.reuse_{kind}", "0 or 1", f"nearest reuse: {what}", plain=True)
    yield Feature(f"B{k}.reuse_dis_iter", "iterations", "between two uses: inside the repeating loop; serial: its elements touched by an iteration")
    yield Feature(f"B{k}.reuse_dis_bytes", "bytes", "touched between two uses by this statement, in all buffers; serial: by all statements in an iteration")
    yield Feature(f"B{k}.reuse_ct", "uses", "extent of the repeating loop; serial: number of other statements")
    for name in ("bytes", "unique_bytes", "lines", "unique_lines"):
        yield Feature(f"B{k}.{name}_d_reuse_ct", "per use", f"{name} / reuse_ct, twice {name} without reuse")
    yield Feature(f"B{k}.stride", "elements", "by which the address moves with the innermost real loop")


def _curve() -> Iterator[Feature]:
    for k in range(CURVE_POINTS):
        yield Feature(
            f"arith_intensity_curve_{k}",
            "log2(1 + operations / byte)",
            f"operations per byte touched when the innermost loops that do iterations ** ({k} / {CURVE_POINTS - 1}) iterations are run; linear between loops",
            plain=True,
        )


def _memory() -> Iterator[Feature]:
    yield Feature("alloc_size", "bytes", "of the buffer stored to, 0 for an output")
    yield Feature("alloc_prod", "elements", "allocated over the whole run: elements * alloc_outer_prod, 0 for an output")
    yield Feature("alloc_outer_prod", "iterations", "of the loops around the allocation")
    yield Feature("alloc_inner_prod", "iterations", "of the loops between the allocation and the statement")


def _loops() -> Iterator[Feature]:
    yield Feature("outer_prod", "iterations", "of all loops around the statement")
    yield Feature("num_loops", "loops", "real loops around the statement")
    yield Feature("auto_unroll_max_step", "statements", "greatest limit up to which the generator may unroll the loops around the statement")


_MACHINE = (
    ("tile_vectors", "log2(vectors)", "results that the written-out loops around the innermost reduction hold, or a vectorised statement makes at once"),
    ("tile_loads", "log2(1 + loads)", "memory reads of one body of the tile"),
    ("tile_loads_per_vector", "log2(loads / vector)", "the same for each result"),
    ("tile_lanes_used", "log2(share)", "of the lanes of these vectors"),
    ("tile_registers_used", "log2(vectors / register)", "of those that may hold results; above 0 they spill"),
    ("tile_steps", "log2(bodies)", "from entering a tile to leaving it"),
    ("tile_in_partial_sums", "0 or 1", "the innermost reduction runs in vectors of partial results"),
    ("tile_loads_across_lines", "log2(1 + loads)", "of one body of the tile, vectors that lie in two cache lines"),
    ("stored_across_lines", "share", "of the vectors stored, those that lie in two cache lines"),
    ("rest_excess", "log2(share)", "iterations, of those that do something: tiles that do not divide an axis go beyond its end"),
    ("rest_inner_excess", "log2(share)", "the same of the innermost loop of each axis, were it alone: how full its last vectors are"),
    ("rest_cut", "share", "of an axis that lies in its last, shorter tile, the greatest of all axes"),
    ("estimated_cycles_per_operation", "log2(cycles * lanes / operation)", "of the whole estimate, without starting threads"),
    ("share_of_instructions", "log2(share)", "of arithmetic and loads from the first cache in the estimate"),
    ("share_of_loads_into_l1", "log2(share)", "of transfers into the first cache"),
    ("share_of_loads_into_l2", "log2(share)", "of transfers into the second cache"),
    ("share_of_loads_into_l3", "log2(share)", "of transfers into the last cache"),
    ("bytes_of_a_run_in_l1", "log2(share)", "touched from entering a tile to leaving it, of the first cache"),
    ("room_of_a_run", "log2(share)", "bytes of the first cache that it takes, spread over the sets as it is, of those that it has"),
    ("bytes_of_a_run_in_l2", "log2(share)", "the same, of the second cache; 0 without one"),
    ("bytes_in_all_in_l2", "log2(share)", "touched over all loops, of the second cache; 0 without one"),
    ("pages_of_a_run", "log2(pages)", "of memory, touched from entering a tile to leaving it"),
    ("share_of_pages", "log2(share)", "cycles to look up pages that are not at hand, if nothing hides them, relative to the estimate, which leaves them out"),
    ("busy_threads", "log2(threads)", "that have work on the whole"),
    ("vector_bytes", "log2(1 + bytes)", "of a register"),
    ("vector_registers", "log2(1 + registers)", "of a core"),
    ("l1_bytes", "log2(1 + bytes)", "of the first cache"),
    ("l2_bytes", "log2(1 + bytes)", "of the second cache, 0 for none"),
    ("l3_bytes", "log2(1 + bytes)", "of the last cache, 0 for none"),
    ("threads", "log2(1 + threads)", "that run a kernel"),
)
MACHINE_NAMES = tuple(name for name, _, _ in _MACHINE)
"""Columns of `machine_features`: parts of the estimate, relative to the whole and to the machine, and the machine itself."""


FEATURES: tuple[Feature, ...] = (
    *_operations(),
    *_annotations(),
    *_device(),
    *(feature for k in range(BUFFER_BLOCKS) for feature in _buffer(k)),
    *_curve(),
    *_memory(),
    *_loops(),
    *(Feature(name, unit, comment, plain=True) for name, unit, comment in _MACHINE),
)
"""All columns of a feature row, in order."""

COLUMN: dict[str, int] = {feature.name: k for k, feature in enumerate(FEATURES)}
"""Name -> column."""

WIDTH = len(FEATURES)


def table_text() -> str:
    """The table as text: column, name, unit, meaning."""
    return "\n".join(f"{k:3}  {f.name:28}  {f.unit:28}  {f.comment}" for k, f in enumerate(FEATURES))
