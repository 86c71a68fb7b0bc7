"""A search in a spawned process, as on systems without fork: it receives a task, which includes its declaration."""
# mypy: ignore-errors

import multiprocessing

from ansor.compat import tvm
from ansor.compat.tvm import auto_scheduler, te


def product(n):
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    r = te.reduce_axis((0, n), name="r")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def options(log):
    context = auto_scheduler.LocalRPCMeasureContext(timeout=60, number=1)
    return auto_scheduler.TuningOptions(
        num_measure_trials=2, num_measures_per_round=1, runner=context.runner, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)]
    )


def search(task):
    task.tune(options("one.json"), auto_scheduler.SketchPolicy(task, auto_scheduler.RandomModel(), verbose=0))
    sch, args = task.apply_best("one.json")
    assert "for " in str(tvm.lower(sch, args))
    auto_scheduler.TaskScheduler([task], strategy="round-robin", callbacks=[]).tune(options("all.json"), search_policy="sketch.random")


if __name__ == "__main__":
    made = [auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG(product(16)), target="llvm -threads=1")]
    process = multiprocessing.get_context("spawn").Process(target=search, args=made)
    process.start()
    process.join()
    raise SystemExit(process.exitcode)
