"""Reductions by functions of one's own, with conditions, starts and tuples, scheduled, built and run: after TVM's tutorials on reductions and tuples."""
# mypy: ignore-errors

import numpy as np

from ansor.compat import tvm
from ansor.compat.tvm import te

ROWS, COLUMNS = 6, 40


def argmax(lhs, rhs):
    better = lhs[1] >= rhs[1]
    return te.if_then_else(better, lhs[0], rhs[0]), te.if_then_else(better, lhs[1], rhs[1])


def lowest_of_ties(x, y):
    first = te.any(x[1] < y[1], te.all(x[1] == y[1], x[0] < y[0]))
    return te.if_then_else(first, x[0], y[0]), te.if_then_else(first, x[1], y[1])


idx = te.placeholder((ROWS, COLUMNS), name="idx", dtype="int32")
val = te.placeholder((ROWS, COLUMNS), name="val", dtype="float32")
start = te.placeholder((ROWS,), name="start", dtype="float32")


def over_columns(name="k"):
    return te.reduce_axis((0, COLUMNS), name)


best = te.comm_reducer(argmax, lambda t0, t1: (tvm.tir.const(-1, t0), te.min_value(t1)), name="argmax")
ties = te.comm_reducer(lowest_of_ties, lambda t0, t1: (tvm.tir.const(-1, t0), te.max_value(t1)), name="ties")
least = te.comm_reducer(lambda x, y: te.if_then_else(y >= x, x, y), te.max_value, name="least")
total = te.comm_reducer(lambda x, y: x + y, lambda t: tvm.tir.const(0, dtype=t), name="mysum")
apart = te.comm_reducer(lambda x, y: (x[0] + y[0], te.max(x[1], y[1])), lambda t0, t1: (tvm.tir.const(0, t0), te.min_value(t1)), name="apart")

k = over_columns()
place, most = te.compute((ROWS,), lambda i: best((idx[i, k], val[i, k]), axis=k), name="T")
k = over_columns()
count, top = te.compute((ROWS,), lambda i: apart((idx[i, k], val[i, k]), axis=k, where=k % 2 == 0), name="U")
k = over_columns()
lowest, fewest = te.compute((ROWS,), lambda i: ties((2 * k + i, val[i, k]), axis=k), name="V")
k = over_columns()
small = te.compute((ROWS,), lambda i: least(val[i, k], axis=k), name="small")
k = over_columns()
some = te.compute((ROWS,), lambda i: te.sum(val[i, k], axis=k, where=k > 3, init=start[i]), name="some")
k = over_columns()
every = te.compute((ROWS,), lambda i: total(val[i, k], axis=k), name="every")

rng = np.random.default_rng(0)
idx_np = rng.permutation(ROWS * COLUMNS).astype(np.int32).reshape(ROWS, COLUMNS)
val_np = rng.integers(-9, 10, (ROWS, COLUMNS)).astype(np.float32)
start_np = np.arange(ROWS, dtype=np.float32)
first = val_np.argmax(1)
rows = np.arange(ROWS)

wanted = [
    ([place, most], [idx, val], [idx_np, val_np], [idx_np[rows, first], val_np[rows, first]]),
    ([count, top], [idx, val], [idx_np, val_np], [idx_np[:, ::2].sum(1), val_np[:, ::2].max(1)]),
    ([lowest, fewest], [val], [val_np], [2 * val_np.argmin(1) + rows, val_np.min(1)]),
    ([small], [val], [val_np], [val_np.min(1)]),
    ([some], [val, start], [val_np, start_np], [start_np + val_np[:, 4:].sum(1)]),
    ([every], [val], [val_np], [val_np.sum(1)]),
]
for outs, ins, given, results in wanted:
    s = te.create_schedule([out.op for out in outs])
    func = tvm.build(s, [*ins, *outs], "llvm")
    found = [tvm.nd.empty((ROWS,), out.dtype) for out in outs]
    func(*map(tvm.nd.array, given), *found)
    for one, result in zip(found, results, strict=True):
        np.testing.assert_array_equal(one.numpy(), result)
print("right:", len(wanted))


def refused(combine, identity, *value):
    try:
        k = over_columns("r")
        te.comm_reducer(combine, identity, name="odd")((idx[0, k], val[0, k]) if value else val[0, k], axis=k)
    except Exception as error:
        return str(error)


print(refused(lambda x, y: x * 2.0 + y, lambda t: tvm.tir.const(0, t)))
print(refused(lambda x, y: (x[0] + y[1], x[1]), lambda t0, t1: (tvm.tir.const(0, t0), tvm.tir.const(0, t1)), "pair"))
print(refused(lowest_of_ties, lambda t0, t1: (tvm.tir.const(-1, t0), te.max_value(t1)), "pair"))
print(refused(lambda x, y: x[0], lambda t0, t1: tvm.tir.const(0, t0), "pair"))
