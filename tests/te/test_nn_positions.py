"""Where extremes are, against NumPy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.ir.evaluate import evaluate
from ansor.te import nn


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_first_and_last_places(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    keepdims, last = data.draw(st.booleans()), data.draw(st.booleans())
    dtype = data.draw(st.sampled_from(["float32", "int8", "int64", "uint8"]))
    values = np.array(data.draw(st.lists(st.integers(0, 3), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))).reshape(shape).astype(dtype)
    if dtype == "float32" and data.draw(st.booleans()):
        values.ravel()[data.draw(st.integers(0, values.size - 1))] = np.nan
        last = False
    x = te.placeholder(shape, dtype, "x")
    for ours, theirs in ((nn.argmax, np.argmax), (nn.argmin, np.argmin)):
        (got,) = evaluate([ours(x, axis, keepdims, last)], {"x": values})
        if last:
            turned = np.flip(values, axis)
            want = (values.size if axis is None else shape[axis]) - 1 - theirs(turned, axis=axis, keepdims=keepdims)
        else:
            want = theirs(values, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == np.int32


def test_several_dimensions() -> None:
    values = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    (got,) = evaluate([nn.argmax(te.placeholder(values.shape, name="x"), (0, 2))], {"x": values})
    np.testing.assert_array_equal(got, values.transpose(1, 0, 2).reshape(3, 8).argmax(1))
