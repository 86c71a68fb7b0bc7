"""A convolution whose template is two functions, as operators of TOPI have, with orders, annotations and places as knobs, tuned and run."""
# mypy: ignore-errors

import itertools
import os

import numpy as np

from ansor.compat import tvm
from ansor.compat.tvm import autotvm, te

TRIALS = int(os.environ.get("TRIALS", "4"))


@autotvm.register_topi_compute("scripts/conv")
def conv(cfg, data, kernel):
    channels, height, width = data.shape
    outputs, _, rows, columns = kernel.shape
    c = te.reduce_axis((0, channels), name="c")
    y, x = te.reduce_axis((0, rows), name="y"), te.reduce_axis((0, columns), name="x")
    shape = (outputs, height - rows + 1, width - columns + 1)
    sums = te.compute(shape, lambda o, h, w: te.sum(data[c, h + y, w + x] * kernel[o, c, y, x], axis=[c, y, x]), name="sums", tag="conv")
    return te.compute(shape, lambda o, h, w: te.max(sums[o, h, w], tvm.tir.const(0, "float32")), name="out")


@autotvm.register_topi_schedule("scripts/conv")
def schedule_conv(cfg, outs):
    s = te.create_schedule([out.op for out in outs])
    (out,) = outs
    (sums,) = s[out].op.input_tensors
    o, h, w = s[out].op.axis
    cfg.define_split("tile_h", h, num_outputs=2)
    cfg.define_split("tile_w", w, num_outputs=2)
    ho, hi = cfg["tile_h"].apply(s, out, h)
    wo, wi = cfg["tile_w"].apply(s, out, w)
    cfg.define_reorder("outer", [o, ho, wo, hi, wi], "candidate", candidate=[[o, ho, wo, hi, wi], [ho, wo, o, hi, wi]])
    order = cfg["outer"].apply(s, out, [o, ho, wo, hi, wi])
    cfg.define_annotate("place", order[:3], "locate_cache", num_anchor=1)
    cfg["place"].apply(s, out, order[:3], source=[sums])
    cfg.define_annotate("inner", [hi, wi], "try_unroll_vec")
    cfg["inner"].apply(s, out, [hi, wi], axis_lens=[cfg["tile_h"].size[-1], cfg["tile_w"].size[-1]], max_unroll=4, cfg=cfg)
    c, y, x = s[sums].op.reduce_axis
    cfg.define_reorder("reduce", [c, y, x, *s[sums].op.axis], "interleave", spatial=[[one] for one in s[sums].op.axis], reduce=[[c, y, x]])
    cfg["reduce"].apply(s, sums, [c, y, x, *s[sums].op.axis])
    return s


data, kernel = te.placeholder((3, 10, 12), name="data"), te.placeholder((4, 3, 3, 3), name="kernel")
task = autotvm.task.create("scripts/conv", args=(data, kernel), target="llvm")
print(task.config_space)
print(task.workload)

option = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(number=1, repeat=1))
for tuner in autotvm.tuner.GATuner(task, pop_size=4), autotvm.tuner.XGBTuner(task, plan_size=2, feature_type="knob"):
    tuner.tune(n_trial=TRIALS, measure_option=option, callbacks=[autotvm.callback.log_to_file("conv.log")])

space = task.config_space
walk = [0]
for _ in range(8):
    walk.append(space.random_walk(walk[-1]))
changed = [sum(one != other for one, other in zip(space.point2knob(a), space.point2knob(b), strict=True)) for a, b in itertools.pairwise(walk)]
print("knobs changed at a step:", sorted(set(changed)))

data_np = np.random.default_rng(0).uniform(-1, 1, (3, 10, 12)).astype(np.float32)
kernel_np = np.random.default_rng(1).uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32)
windows = np.lib.stride_tricks.sliding_window_view(data_np, (3, 3), axis=(1, 2))
wanted = np.maximum(np.einsum("chwyx,ocyx->ohw", windows, kernel_np), 0)


def run():
    out = conv(data, kernel)
    func = tvm.build(schedule_conv([out]), [data, kernel, out], "llvm")
    found = tvm.nd.empty((4, 8, 10))
    func(tvm.nd.array(data_np), tvm.nd.array(kernel_np), found)
    tvm.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)


with autotvm.apply_history_best("conv.log"), tvm.target.Target("llvm"):
    run()
run()  # by the fallback
print("right with and without a log")
