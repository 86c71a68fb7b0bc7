"""A product with a custom template, tuned, with its best schedule run: a typical script for AutoTVM on a processor."""
# mypy: ignore-errors

import logging
import os
import sys

import numpy as np

from ansor.compat import tvm
from ansor.compat.tvm import autotvm, te

TRIALS = int(os.environ.get("TRIALS", "4"))


def fixed(n, m, k, dtype):
    a, b = te.placeholder((n, k), name="a", dtype=dtype), te.placeholder((k, m), name="b", dtype=dtype)
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    (r,) = s[c].op.reduce_axis
    yo, yi = s[c].split(y, 8)
    xo, xi = s[c].split(x, 8)
    s[c].reorder(yo, xo, r, yi, xi)
    return s, [a, b, c]


@autotvm.template("scripts/product")
def product(n, m, k, dtype):
    a, b = te.placeholder((n, k), name="a", dtype=dtype), te.placeholder((k, m), name="b", dtype=dtype)
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    r = s[c].op.reduce_axis[0]

    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    cfg.define_knob("threads", [False, True])
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, r, yi, xi)
    if cfg["threads"].val:
        s[c].parallel(yo)
    return s, [a, b, c]


size = (32, 48, 16)
task = autotvm.task.create("scripts/product", args=(*size, "float32"), target="llvm")
print(task.config_space)

logging.getLogger("autotvm").setLevel(logging.INFO)
logging.getLogger("autotvm").addHandler(logging.StreamHandler(sys.stdout))
measure_option = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=2, repeat=1))
for tuner in autotvm.tuner.XGBTuner(task), autotvm.tuner.RandomTuner(task), autotvm.tuner.GATuner(task), autotvm.tuner.GridSearchTuner(task):
    tuner.tune(n_trial=TRIALS, measure_option=measure_option, callbacks=[autotvm.callback.log_to_file("product.log")])

dispatch_context = autotvm.apply_history_best("product.log")
print(dispatch_context.query(task.target, task.workload))
with autotvm.apply_history_best("product.log"), tvm.target.Target("llvm"):
    s, arg_bufs = product(*size, "float32")
    func = tvm.build(s, arg_bufs)

a_np, b_np = np.random.uniform(size=(32, 16)).astype(np.float32), np.random.uniform(size=(16, 48)).astype(np.float32)
for function in func, tvm.build(*fixed(*size, "float32"), target="llvm", name="fixed"):
    c_tvm = tvm.nd.empty((32, 48))
    function(tvm.nd.array(a_np), tvm.nd.array(b_np), c_tvm)
    tvm.testing.assert_allclose(a_np.dot(b_np), c_tvm.numpy(), rtol=1e-4)
