"""Templates for tests, registered once when this file is imported."""

import ansor
from ansor import autotvm, te
from ansor.templates.template import Instance

LIMIT = 16
"""The maximum number of columns in a tile of `matmul`."""


@autotvm.template("tests/matmul")
def matmul(n: int, m: int, k: int) -> Instance:
    """Two splits, one way to run the innermost loop; tiles with more than LIMIT columns are impossible."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = ansor.create_schedule(c.op)
    (y, x), (z,) = s[c].op.axis, s[c].op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    cfg.define_annotate("inner", [x], "try_vec")
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, z, yi, xi)
    cfg["inner"].apply(s, c, [xi])
    if cfg["tile_x"].size[-1] > LIMIT:
        cfg.raise_error(f"tiles have at most {LIMIT} columns")
    return s, [a, b, c]


def instance(name: str, args: tuple[object, ...], **digits: int) -> tuple[autotvm.Task, autotvm.ConfigEntity]:
    """A task, and its configuration with these digits (0 if not given)."""
    task = autotvm.task.create(name, args, "llvm")
    space = task.config_space
    return task, space.get(space.knob2point([digits.get(knob, 0) for knob in space.space_map]))


@autotvm.template("tests/everything")
def everything(n: int, m: int, k: int) -> Instance:
    """Every kind of knob: sizes with tails, sizes that are read, dependent sizes, one number for two steps, orders, annotations, stages."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    product = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="P")
    c = te.compute((n, m), lambda i, j: te.max(product[i, j], te.const(0.0)), name="C")
    s = ansor.create_schedule(c.op)
    cfg = autotvm.get_config()
    (y, x), (z,) = s[c].op.axis, s[product].op.reduce_axis
    cfg.define_split("y", y, "verbose", num_outputs=3)
    cfg.define_split("x", x, "power2", num_outputs=2)
    cfg.define_knob("step", [1, 2, 4])
    cfg.define_knob("inside", [False, True])
    cfg.define_annotate("run", [x, z], "try_vec")
    parts = cfg["y"].apply(s, c, y)
    columns, step = cfg["x"].size[-1], cfg["step"].val
    if columns * step > LIMIT:
        cfg.raise_error("too large together")
    xo, xi = s[c].split(x, factor=columns)
    cfg.define_reorder("order", [*parts, xo, xi], "interval_all", interval=(2, 4))
    order = cfg["order"].apply(s, c, [*parts, xo, xi])
    zo, zi = s[product].split(z, factor=step)
    s[product].pragma(zi, "auto_unroll_max_step", 16 * step)
    if cfg["inside"].val:
        s[product].compute_at(s[c], order[1])
    cfg["run"].apply(s, c, [order[-1], order[-2]])
    return s, [a, b, c]
