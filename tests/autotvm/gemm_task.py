"""A matrix product as a task for cost models, with invented times."""

from dataclasses import dataclass, field

import ansor
from ansor import te
from ansor.autotvm import ConfigEntity, ConfigSpace, MeasureInput, MeasureResult, Task
from ansor.errors import InstantiationError
from ansor.manual.schedule import Schedule
from ansor.te.tensor import Tensor


def _space(n: int) -> ConfigSpace:
    made = ConfigSpace()
    made.define_split("tile_y", n, num_outputs=2)
    made.define_split("tile_x", n, num_outputs=2)
    made.define_knob("order", ["outside", "inside"])
    return made


@dataclass
class GemmTask:
    """n x n x n. Columns of one element are impossible, rows of 4 x 16 are fastest; `instantiated` counts instantiations."""

    n: int = 64
    name: str = "gemm"
    instantiated: int = field(default=0)

    @property
    def args(self) -> tuple[int]:
        return (self.n,)

    @property
    def config_space(self) -> ConfigSpace:
        return _space(self.n)

    def instantiate(self, config: ConfigEntity) -> tuple[Schedule, list[Tensor]]:
        self.instantiated += 1
        if config["tile_x"].size[-1] == 1:
            raise InstantiationError("columns have more than one element")
        a, b = te.placeholder((self.n, self.n), name="A"), te.placeholder((self.n, self.n), name="B")
        r = te.reduce_axis((0, self.n), "k")
        c = te.compute((self.n, self.n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
        s = ansor.create_schedule(c.op)
        (y, x), (k,) = s[c].op.axis, s[c].op.reduce_axis
        yo, xo, yi, xi = s[c].tile(y, x, config["tile_y"].size[-1], config["tile_x"].size[-1])
        s[c].reorder(yo, xo, *((k, yi) if config["order"].val == "outside" else (yi, k)), xi)
        return s, [a, b, c]


def seconds(config: ConfigEntity) -> float | None:
    """None if a configuration is impossible."""
    rows, columns = config["tile_y"].size[-1].bit_length(), config["tile_x"].size[-1].bit_length()
    if columns == 1:
        return None
    return 1e-3 * float(1 + abs(rows - 3) + abs(columns - 5) + (config["order"].val == "inside"))


def measured(n: int, indices: range | list[int], *, target: str = "llvm", name: str = "gemm") -> list[tuple[MeasureInput, MeasureResult]]:
    """Records of configurations."""
    space = _space(n)
    configs = [space.get(index) for index in indices]
    inputs = [MeasureInput(target, Task(name, (n,)), config) for config in configs]
    costs = [seconds(config) for config in configs]
    return [(inp, MeasureResult((1e9,), 1, 0.1, 1.0) if cost is None else MeasureResult((cost,), 0, 0.1, 1.0)) for inp, cost in zip(inputs, costs, strict=True)]
