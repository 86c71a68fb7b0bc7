"""A dense layer with bias, searched, run, timed, and searched again: a typical script for TVM's auto-scheduler on a processor."""
# mypy: ignore-errors

import os

import numpy as np

from ansor.compat import tvm
from ansor.compat.tvm import auto_scheduler, te

TRIALS = int(os.environ.get("TRIALS", "4"))


@auto_scheduler.register_workload
def dense_bias(rows, inner, columns, dtype):
    x = te.placeholder((rows, inner), name="x", dtype=dtype)
    w = te.placeholder((inner, columns), name="w", dtype=dtype)
    bias = te.placeholder((columns,), name="bias", dtype=dtype)
    r = te.reduce_axis((0, inner), name="r")
    product = te.compute((rows, columns), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name="product", attrs={"layout_free_placeholders": [w]})
    out = te.compute((rows, columns), lambda i, j: product[i, j] + bias[j], name="out")
    return [x, w, bias, out]


target = tvm.target.Target("llvm")
task = tvm.auto_scheduler.SearchTask(func=dense_bias, args=(48, 64, 32, "float32"), target=target)
print(task.compute_dag)

log_file = "dense.json"
task.tune(auto_scheduler.TuningOptions(num_measure_trials=TRIALS, measure_callbacks=[auto_scheduler.RecordToFile(log_file)], verbose=0))
sch, args = task.apply_best(log_file)
print(tvm.lower(sch, args, simple_mode=True))
func = tvm.build(sch, args, target)

x_np, w_np = np.random.uniform(size=(48, 64)).astype(np.float32), np.random.uniform(size=(64, 32)).astype(np.float32)
bias_np = np.random.uniform(size=(32,)).astype(np.float32)
dev = tvm.cpu()
x_tvm, w_tvm, bias_tvm = (tvm.nd.array(value, device=dev) for value in (x_np, w_np, bias_np))
out_tvm = tvm.nd.empty((48, 32), device=dev)
func(x_tvm, w_tvm, bias_tvm, out_tvm)
np.testing.assert_allclose(x_np.dot(w_np) + bias_np, out_tvm.numpy(), rtol=1e-3)

evaluator = func.time_evaluator(func.entry_name, dev, min_repeat_ms=1)
found = evaluator(x_tvm, w_tvm, bias_tvm, out_tvm)
print(f"{np.median(found.results) * 1000:.3f} ms", found.mean > 0, found.median > 0)
print(task.print_best(log_file))


def search_on(task, log_file):
    cost_model = auto_scheduler.XGBModel()
    cost_model.update_from_file(log_file)
    policy = auto_scheduler.SketchPolicy(task, cost_model, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log_file)])
    options = auto_scheduler.TuningOptions(num_measure_trials=2, measure_callbacks=[auto_scheduler.RecordToFile(log_file)], verbose=0)
    task.tune(options, search_policy=policy)


search_on(task, log_file)

scheduler = auto_scheduler.TaskScheduler([task], task_weights=[2], callbacks=[])
measure_ctx = auto_scheduler.LocalRPCMeasureContext(repeat=1, min_repeat_ms=1)
options = auto_scheduler.TuningOptions(
    num_measure_trials=2, num_measures_per_round=2, runner=measure_ctx.runner, measure_callbacks=[auto_scheduler.RecordToFile("both.json")], verbose=0
)
scheduler.tune(options)
with auto_scheduler.ApplyHistoryBest(log_file):
    sch, args = task.apply_best()
