"""Sketches of open sizes, for given ones."""

import ansor
from ansor import te
from ansor.schedule.sized import guards_of, open_sizes, sized
from ansor.te.size import open_size


def test_the_same_steps_for_other_sizes() -> None:
    n, m = open_size("n"), open_size("m")
    a, b = te.placeholder((n, m), name="a"), te.placeholder((m,), name="b")
    k = te.reduce_axis((0, m), "k")
    c = te.compute((n,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="c")
    d = te.compute((n,), lambda i: c[n - 1 - i] + te.cast("float32", i * n), name="d")
    s = ansor.create_schedule(d.op)
    s[d].vectorize(s[d].split(d.op.axis[0], factor=8)[1])
    sketch = s.sketch([a, b, d])
    assert {size.text for size in open_sizes(sketch.dag.stages) if size.key} == {"n", "m"} and s.guards
    assert len(guards_of([a, b, c, d])) == len(s.guards)  # a schedule decides nothing
    for rows, columns in ((4, 2), (20, 3), (64, 5)):
        values = {n.key: rows, m.key: columns}
        for guard in s.guards:
            guard.check(values)
        found = sized(sketch, values)
        assert [tensor.shape for tensor in found.dag.tensors] == [(rows, columns), (columns,), (rows,)] and found.steps == sketch.steps
        assert not open_sizes(found.dag.stages) and found.lower_row((), "f").body
