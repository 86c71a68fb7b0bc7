"""Log lines for several tests."""

import json

from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult, RecordedState, RecordedTask
from ansor.compat.auto_scheduler.steps import ComputeInlineStep
from ansor.compat.common.hardware import HardwareParams
from ansor.support.json_values import Json

MATMUL = '["matmul", 512, 512, 512, "float32"]'
HASHED = '["0123456789abcdef0123456789abcdef", 1, 56, 56, 64, 3, 3, 64, 64]'
HARDWARE = [8, 64, 64, 0, 0, 0, 0, 0]

STEPS: list[Json] = [
    ["SP", 2, 0, 512, [2, 1, 4], 1], ["SP", 2, 4, 0, [], 0], ["RE", 2, [0, 4, 1, 5, 8, 2]], ["FSP", 4, 0, 0, 2], ["FFSP", 4, 0, [4, 3, 2], 1, 1],
    ["FFSP", 4, 0, [], 0, 0], ["FU", 4, [0, 1]], ["FU", 4, []], ["AN", 4, 0, 3], ["PR", 2, 0, "auto_unroll_max_step$64"], ["SA", 4, 0, 32, -8],
    ["CA", 2, 4, 3], ["CI", 5], ["CR", 6], ["CHR", 2, "shared", [3, 4]], ["CHW", 3, "local"], ["RF", 3, 2, 1],
]  # fmt: skip
"""Every kind of step."""

TASKS = {
    "v0.1": [MATMUL, "llvm"],
    "v0.2": [MATMUL, "cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32"],
    "v0.3": [MATMUL, "llvm -keys=cpu", HARDWARE],
    "v0.4": [HASHED, "llvm -keys=cpu", HARDWARE, "llvm"],
    "v0.5": [HASHED, "llvm -keys=cpu -mcpu=core-avx2", HARDWARE, "", 2],
    "v0.6": [MATMUL, "cuda -keys=cuda,gpu", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], "llvm -keys=cpu", 1, ["W_data", "W_indices"]],
}
"""A task as each version writes it."""


def line(task: object = TASKS["v0.6"], version: object = "v0.6") -> str:
    return json.dumps({"i": [task, [[], STEPS]], "r": [[0.0044742, 8.75e-06], 0, 0.335558, 1607112214], "v": version})


LINE = line()


def changed(*path: str | int, to: object, row: str = LINE) -> str:
    """The line with another value at one place."""
    fields = json.loads(row)
    place = fields
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(fields)


def measured(seconds: float, *, key: str = MATMUL, target: str = "llvm", error_no: int = 0) -> tuple[MeasureInput, MeasureResult]:
    task = RecordedTask(key, target, HardwareParams(8, 64, 64), "", None, None)
    return MeasureInput(task, RecordedState((ComputeInlineStep(1),))), MeasureResult([seconds], error_no, "", 1.0, 2.0)
