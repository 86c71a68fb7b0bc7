import numpy as np

from ansor.codegen.source import DTYPES, Argument
from ansor.measure.inputs import make_inputs

ARGUMENTS = tuple(Argument(f"{dtype}s", (50, 4), dtype, "input") for dtype in DTYPES)


def test_each_argument_has_its_own_stream() -> None:
    every, last = make_inputs(ARGUMENTS, seed=3), make_inputs(ARGUMENTS[-3:], seed=3)
    assert all(np.array_equal(every[name], array) for name, array in last.items())
    assert not np.array_equal(every["int32s"], make_inputs(ARGUMENTS, seed=4)["int32s"])
    same_type = (Argument("A", (50,), "float32", "input"), Argument("B", (50,), "float32", "constant"))
    a, b = make_inputs(same_type).values()
    assert not np.array_equal(a, b)


def test_values_stay_in_their_ranges() -> None:
    inputs = make_inputs(ARGUMENTS, ranges={"int64s": (5, 7), "float64s": (2, 3)})
    for argument in ARGUMENTS:
        array = inputs[argument.name]
        assert array.dtype == argument.dtype and array.shape == (50, 4)
    assert set(np.unique(inputs["int64s"])) == {5, 6}
    assert inputs["float64s"].min() >= 2 and abs(inputs["float32s"]).max() <= 1 and inputs["float32s"].min() < 0
    assert inputs["int8s"].min() >= -8 and inputs["uint8s"].max() < 16 and 0 < inputs["bools"].mean() < 1


def test_outputs_get_no_inputs() -> None:
    assert make_inputs((Argument("C", (2,), "float32", "output"),)) == {}
