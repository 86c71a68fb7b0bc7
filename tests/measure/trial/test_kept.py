"""The file of a reference's outputs: written and read back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from ansor.codegen.source import Argument
from ansor.measure.trial.kept import KeptFile, kept_bytes, read_kept
from ansor.measure.verify import Sensitivity

DTYPES = some.sampled_from(["float64", "int32", "int8", "uint8"])


@given(some.lists(some.tuples(DTYPES, some.lists(some.integers(1, 5), max_size=3), some.floats(0, 1e9)), max_size=3), some.floats(0, 1e9))
def test_what_is_written_is_read(declared: list[tuple[str, list[int], float]], scale: float) -> None:
    random = np.random.default_rng(0)
    arguments = [Argument(f"out{number}", tuple(shape), dtype, "output") for number, (dtype, shape, _) in enumerate(declared)]
    outputs = {one.name: random.integers(0, 100, one.shape).astype(one.dtype) for one in arguments}
    each = {one.name: random.uniform(0, 1, one.shape).astype(np.float32) if one.dtype == "float64" else None for one in arguments}
    moved = {one.name: Sensitivity(by, each[one.name]) for one, (_, _, by) in zip(arguments, declared, strict=True)}
    found = read_kept(kept_bytes(KeptFile(outputs, moved, scale), arguments), arguments)
    assert found.input_scale == scale
    for name, array in outputs.items():
        np.testing.assert_array_equal(found.outputs[name], array)
        assert found.moves[name].usual == moved[name].usual
        np.testing.assert_array_equal(found.moves[name].each, each[name])
