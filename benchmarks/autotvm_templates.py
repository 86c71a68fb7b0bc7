"""Templates for `autotvm_tuners.py`, written in the style of AutoTVM's users."""

from __future__ import annotations

import ansor
from ansor import autotvm, te
from ansor.te import nn
from ansor.templates.template import Instance


@autotvm.template("bench/matmul")
def matmul(n: int, m: int, k: int) -> Instance:
    """The template of AutoTVM's tutorial: two splits, 10 x 10 configurations for 512 x 512."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = ansor.create_schedule(c.op)
    (y, x), (z,) = s[c].op.axis, s[c].op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, z, yi, xi)
    return s, [a, b, c]


@autotvm.template("bench/conv2d")
def conv2d(channels: int, size: int, filters: int, kernel: int, stride: int, padding: int) -> Instance:
    """One image, NCHW. Sums are kept in a tile of channels x rows x columns: four splits, two orders of the inner loops, kernel columns unrolled or not."""
    data, weight = te.placeholder((1, channels, size, size), name="data"), te.placeholder((filters, channels, kernel, kernel), name="weight")
    conv = nn.conv2d_nchw(data, weight, stride, padding)
    s = ansor.create_schedule(conv.op)
    sums = s.cache_write(conv, "local")
    n, co, oh, ow = s[conv].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_co", co, num_outputs=2)
    cfg.define_split("tile_oh", oh, num_outputs=2)
    cfg.define_split("tile_ow", ow, num_outputs=2)
    cfg.define_split("tile_ci", channels, num_outputs=2)
    cfg.define_knob("taps_inside", [False, True])
    cfg.define_knob("unroll_kw", [False, True])
    coo, coi = cfg["tile_co"].apply(s, conv, co)
    oho, ohi = cfg["tile_oh"].apply(s, conv, oh)
    owo, owi = cfg["tile_ow"].apply(s, conv, ow)
    s[conv].reorder(n, coo, oho, owo, coi, ohi, owi)
    s[conv].vectorize(owi)
    s[sums].compute_at(s[conv], owo)
    (_, c, h, w), (ci, kh, kw) = s[sums].op.axis, s[sums].op.reduce_axis
    cio, cii = cfg["tile_ci"].apply(s, sums, ci)
    s[sums].reorder(cio, *((cii, kh, kw) if cfg["taps_inside"].val else (kh, kw, cii)), c, h, w)
    s[sums].vectorize(w)
    if cfg["unroll_kw"].val:
        s[sums].unroll(kw)
    return s, [data, weight, conv]
