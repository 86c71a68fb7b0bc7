"""Tasks: their spaces, the programs of configurations, and their numbers of operations."""

from collections.abc import Callable

import numpy as np
import pytest

import ansor
from ansor import autotvm, te
from ansor.errors import ConfigError, DeclarationError, InstantiationError
from ansor.te.tensor import Tensor
from ansor.templates.entities import Entity
from ansor.templates.task import compute_flop
from ansor.templates.template import Instance
from tests.autotvm.templates import instance, matmul


def test_create_collects_the_space() -> None:
    task = autotvm.task.create("tests/matmul", (32, 32, 64), "llvm -mcpu=skylake", target_host="llvm")
    assert task.workload == ("tests/matmul", 32, 32, 64) and (task.target, task.target_host) == ("llvm -mcpu=skylake", "llvm")
    assert task.config_space.dims == [6, 6, 2] and task.flop == 2 * 32 * 32 * 64 and task.config_space.valid()
    assert repr(task) == "Task(name='tests/matmul', args=(32, 32, 64), kwargs={})" and task == autotvm.Task("tests/matmul", (32, 32, 64))


def test_a_configuration_is_a_program() -> None:
    task, config = instance("tests/matmul", (32, 32, 64), tile_y=2, tile_x=4, inner=1)
    s, (a, b, c) = task.instantiate(config)
    assert str(s).splitlines() == [
        "Split(stage='C', loop='i', lengths=(4,), parts=2)",
        "Split(stage='C', loop='j', lengths=(16,), parts=2)",
        "Reorder(stage='C', loops=('i_0', 'j_0', 'r', 'i_1', 'j_1'))",
        "Vectorize(stage='C', loop='j_1', amount=1)",
    ]
    assert [a.name, b.name, c.name] == ["A", "B", "C"] and config.valid() and config.flop == 0


@pytest.mark.compiler
def test_the_program_is_right() -> None:
    task, config = instance("tests/matmul", (6, 8, 10), tile_y=1, tile_x=2, inner=1)
    s, tensors = task.instantiate(config)
    a, b = np.random.default_rng(0).random((6, 10), np.float32), np.random.default_rng(1).random((10, 8), np.float32)
    assert np.allclose(np.asarray(ansor.build(s, tensors)(a, b)), a @ b, rtol=1e-5)


def test_an_impossible_configuration_raises_each_time() -> None:
    task, config = instance("tests/matmul", (32, 32, 64), tile_x=5)
    for _ in range(2):
        with pytest.raises(InstantiationError, match="^tiles have at most 16 columns$"):
            task.instantiate(config)
        assert not config.valid() and config.errors == ["tiles have at most 16 columns"]


def test_steps_that_do_not_fit_make_a_configuration_impossible() -> None:
    @autotvm.template("tests/inner_parallel")
    def inner_parallel() -> Instance:
        s, tensors = matmul(8, 8, 8)
        cfg = autotvm.get_config()
        cfg.define_knob("loop", [0, -1])
        s["C"].parallel(s["C"].leaf_iter_vars[cfg["loop"].val])
        return s, tensors

    task, config = instance("tests/inner_parallel", (), loop=0)
    assert task.instantiate(config)
    with pytest.raises(InstantiationError, match="does not work: asked to run loop .* in parallel"):
        task.instantiate(instance("tests/inner_parallel", (), loop=1)[1])


def test_an_unknown_task_can_be_read_but_not_run() -> None:
    task = autotvm.Task("tests/nobody", (1,))
    assert task.workload == ("tests/nobody", 1)
    nothing = autotvm.ConfigEntity(0, None, {})
    for use in (lambda: task.config_space, lambda: task.instantiate(nothing), lambda: autotvm.task.create("tests/nobody", (), "llvm")):
        with pytest.raises(ConfigError, match="tests/nobody"):
            use()


def test_mistakes_in_templates_are_reported() -> None:
    with pytest.raises(DeclarationError, match=r"with the arguments \(8, 8\): missing a required argument: 'k'; it takes"):
        autotvm.task.create("tests/matmul", (8, 8))

    @autotvm.template("tests/only a schedule")
    def only_a_schedule(n: int) -> Instance:
        return matmul(n, n, n)[0]  # type: ignore[return-value]  # the mistake that is tested

    with pytest.raises(DeclarationError, match="template 'tests/only a schedule' returns .*; return the schedule and the kernel's arguments"):
        autotvm.task.create("tests/only a schedule", (8,))
    with pytest.raises(DeclarationError, match="write @autotvm.template.name. with a string"):
        autotvm.template(only_a_schedule)  # type: ignore[call-overload]


@pytest.mark.parametrize("value", [autotvm.ReorderEntity([0, 1]), autotvm.SplitEntity([-1, 2, 2]), autotvm.OtherOptionEntity(3)])
def test_configurations_of_other_templates_are_refused(value: Entity) -> None:
    task = autotvm.task.create("tests/matmul", (8, 8, 8))
    (name, *_), config = task.config_space, task.config_space.get(0)
    values = {knob: config[knob] for knob in config} | {name: value}
    with pytest.raises(ConfigError, match=f"asked for knob '{name}' as SplitEntity of 2 numbers, but this configuration has {type(value).__name__} "):
        task.instantiate(autotvm.ConfigEntity(0, None, values))


def test_keyword_arguments_from_a_log_are_refused() -> None:
    with pytest.raises(ConfigError, match="with the keyword arguments k; templates take none"):
        autotvm.Task("tests/matmul", (8, 8), {"k": 8}).instantiate(autotvm.ConfigEntity(0, None, {}))


def test_operations_that_a_template_adds_count() -> None:
    @autotvm.template("tests/counted")
    def counted() -> Instance:
        autotvm.get_config().add_flop(123)
        return matmul(8, 8, 8)

    assert autotvm.task.create("tests/counted", (), "llvm").flop == 123


# Operations in compute_flop. Source: TVM 0.9, test_autotvm_flop_calculator.py ---------------------------------------------------------------------------


def _sum(body: Callable[..., te.Expr], shape: tuple[int, ...], *axes: te.Axis, reduce: Callable[..., te.Expr] = te.sum) -> Tensor:
    return te.compute(shape, lambda *i: reduce(body(*i), axis=axes), name="C")


def conv(dtype: str = "float32") -> tuple[Tensor, int]:
    data, kernel = te.placeholder((2, 16, 10, 10), dtype, name="X"), te.placeholder((8, 16, 3, 3), dtype, name="W")
    c, y, x = te.reduce_axis(16, "c"), te.reduce_axis(3, "y"), te.reduce_axis(3, "x")
    return _sum(lambda n, f, i, j: data[n, c, i + y, j + x] * kernel[f, c, y, x], (2, 8, 8, 8), c, y, x), 2 * 2 * 8 * 8 * 8 * 16 * 3 * 3


def packed_gemm() -> tuple[Tensor, int]:
    a, b, k = te.placeholder((32, 8, 4), name="A"), te.placeholder((16, 32, 8), name="B"), te.reduce_axis(32, "k")
    return _sum(lambda i, j, p, q: a[k, i, p] * b[j, k, q], (8, 16, 4, 8), k), 2 * 32 * 128 * 32


def outer_product() -> tuple[Tensor, int]:
    a, b = te.placeholder((12,), name="A"), te.placeholder((13,), name="B")
    return te.compute((12, 13), lambda i, j: a[i] * b[j], name="C"), 12 * 13


def pool(reduce: Callable[..., te.Expr], divided: bool) -> tuple[Tensor, int]:
    data, y, x = te.placeholder((2, 3, 8, 8), name="X"), te.reduce_axis(2, "y"), te.reduce_axis(2, "x")

    def body(n: te.Axis, c: te.Axis, i: te.Axis, j: te.Axis) -> te.Expr:
        read = data[n, c, 2 * i + y, 2 * j + x]
        return read / 4.0 if divided else read

    return _sum(body, (2, 3, 4, 4), y, x, reduce=reduce), (1 + divided) * 2 * 3 * 4 * 4 * 4


@pytest.mark.parametrize("declared", [conv(), packed_gemm(), outer_product(), pool(te.max, False), pool(te.sum, True)])
def test_operations(declared: tuple[Tensor, int]) -> None:
    out, expected = declared
    assert compute_flop(ansor.create_schedule(out.op)) == expected


def test_moving_data_has_no_operations() -> None:
    x = te.placeholder((4, 5), name="X")
    with pytest.raises(RuntimeError, match="asked for the operations of T, which has none; call cfg.add_flop"):
        compute_flop(ansor.create_schedule(te.compute((5, 4), lambda i, j: x[j, i], name="T")))
