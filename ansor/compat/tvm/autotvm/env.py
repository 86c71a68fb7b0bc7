"""`tvm.autotvm.env`: global settings of AutoTVM."""

from __future__ import annotations

import logging


class AutotvmGlobalScope:
    """`silent`: whether the logger `autotvm` is disabled. `in_tuning`: always False; kept for code that reads it."""

    def __init__(self) -> None:
        self.in_tuning = False

    @property
    def silent(self) -> bool:
        return logging.getLogger("autotvm").disabled

    @silent.setter
    def silent(self, silent: bool) -> None:
        logging.getLogger("autotvm").disabled = bool(silent)


GLOBAL_SCOPE = AutotvmGlobalScope()
