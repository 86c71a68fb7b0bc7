from __future__ import annotations

import numpy as np
import pytest
import torch

from ansor.graph.lengths import Pair
from ansor.graph.spans import Span, before

pytestmark = pytest.mark.torch


def test_what_lies_before_the_end() -> None:
    whole = np.arange(24).reshape(2, 12)
    assert before(whole, (Span(1),), 12, 2).tolist() == [[0, 1], [12, 13]]
    assert before(whole, (Span(1, outer=2),), 6, 2).tolist() == [[0, 1, 6, 7], [12, 13, 18, 19]]
    assert before(whole, (Span(1, inner=2),), 6, 2).tolist() == [[0, 1, 2, 3], [12, 13, 14, 15]]
    assert before(torch.zeros(4, 4), (Span(0), Span(1)), 4, 3).shape == (3, 3)


def test_shapes_that_differ_in_the_length_only() -> None:
    pair = Pair(None, None, 12, 5)  # type: ignore[arg-type]  # only lengths are used
    assert pair.spans_of((2, 12, 8), (2, 5, 8)) == (Span(1),) and pair.spans_of((3,), (3,)) == ()
    assert pair.spans_of((24,), (10,)) is None and pair.spans_of((12, 1), (5,)) is None
