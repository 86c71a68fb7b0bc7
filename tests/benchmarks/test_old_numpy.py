"""What older versions of NumPy took."""

import ast
from typing import Any

import numpy as np
import old_numpy


def test_a_list_of_slices_is_an_index() -> None:
    code = ast.fix_missing_locations(old_numpy.OldIndices().visit(ast.parse("found = a[where], b[place]")))
    names: dict[str, Any] = {"a": np.arange(6).reshape(2, 3), "where": [slice(None), 1], "b": {"x": 5}, "place": "x", old_numpy.INDEX: old_numpy.index}
    exec(compile(code, "code", "exec"), names)
    first, second = names["found"]
    assert first.tolist() == [1, 4] and second == 5
