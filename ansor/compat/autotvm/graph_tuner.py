"""Names of AutoTVM's graph tuners, which choose a layout for each convolution of a network. Source: AutoTVM 0.9, `autotvm.graph_tuner`.

There is nothing to choose here: `ansor.compile` uses one layout per network, and kernels pack weights and other operands as needed.
"""

from __future__ import annotations

from ansor.errors import TargetError


class DPTuner:
    """Not available: raises a TargetError that names the replacement."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TargetError(
            f"asked for {type(self).__name__}, but operators here have no layouts to choose from; use ansor.compile(model, example_inputs, trials=...), "
            "which tunes a network as a whole"
        )


class PBQPTuner(DPTuner):
    """Not available: raises a TargetError that names the replacement."""
