"""Log lines for several tests."""

import json

from ansor.autotvm import ConfigEntity, MeasureInput, MeasureResult, Task, encode

LINE = (
    '{"input": ["llvm -mcpu=core-avx2", "dense", [["TENSOR", [1, 512], "float32"], [[1, 1], []], null, 0.5], {}], '
    '"config": {"index": 193, "code_hash": null, "entity": '
    '[["tile_y", "sp", [-1, 8]], ["order", "re", [1, 0]], ["ann", "an", ["vec", "none"]], ["k", "ot", false], ["n", "ot", [1, "x"]]]}, '
    '"result": [[0.0012, 0.0011], 0, 0.8, 1650000000.25], "version": 0.2, "tvm_version": "0.9.0"}'
)


def changed(*path: str | int, to: object, row: str = LINE) -> str:
    """The line with another value at one place."""
    fields = json.loads(row)
    place = fields
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(fields)


def line(seconds: float, *, target: str = "llvm", task: str = "dense", error_no: int = 0) -> str:
    config = ConfigEntity(0, None, {})
    return encode(MeasureInput(target, Task(task), config), MeasureResult((seconds,), error_no, 1.0, 2.0), tvm_version="0.9.0")
