"""The mean cost of a measurement."""

import math

from ansor.compat.common.outcome import MeasureErrorNo, mean_cost


def test_mean_costs() -> None:
    assert mean_cost((1.0, 2.0), MeasureErrorNo.NO_ERROR) == 1.5
    assert mean_cost((1.0,), MeasureErrorNo.RUN_TIMEOUT) == mean_cost((), 0) == mean_cost((1e308, 1e308), 0) == math.inf
