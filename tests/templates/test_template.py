"""Templates by name, and their two halves."""

import logging
from collections.abc import Sequence

import numpy as np
import pytest

import ansor
from ansor import autotvm, te
from ansor.errors import ConfigError, DeclarationError
from ansor.manual.schedule import Schedule
from ansor.te.tensor import Tensor
from ansor.templates.config import Config
from ansor.templates.template import Instance, args_to_workload, deserialize_args, find_template, get_workload
from tests.autotvm.templates import matmul


@autotvm.register_topi_compute("tests/half")
def doubled(cfg: Config, x: Tensor) -> Tensor:
    cfg.define_knob("twice", [True, False])
    return te.compute(x.shape, lambda i: x[i] * 2.0, name="Y")


@autotvm.register_topi_schedule("tests/half")
def schedule_doubled(cfg: Config, outs: Sequence[Tensor]) -> Schedule:
    s = ansor.create_schedule(outs[0].op)
    cfg.define_split("tile", s[outs[0]].op.axis[0], num_outputs=2)
    _, inner = cfg["tile"].apply(s, outs[0], s[outs[0]].op.axis[0])
    s[outs[0]].vectorize(inner)
    return s


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="asked to register .*again as 'tests/matmul', which exists already; choose another name"):

        @autotvm.template("tests/matmul")
        def again() -> Instance:
            raise AssertionError

    with pytest.raises(ValueError, match="exists already"):
        autotvm.register_topi_compute("tests/half")(lambda cfg: te.placeholder(1))


def test_templates_take_no_keyword_arguments() -> None:
    with pytest.raises(DeclarationError, match="keyword arguments {'k': 8}; pass them by position"):
        matmul(8, 8, k=8)


def test_outside_of_all_contexts_a_template_gets_a_fallback(caplog: pytest.LogCaptureFixture) -> None:
    """Source: TVM 0.9, test_autotvm_dispatch_context.py :: test_fallback."""
    seen = []

    @autotvm.template("tests/fallback")
    def simple(a: int, b: int) -> Instance:
        seen.append(autotvm.get_config())
        return matmul(a, b, 1)

    with caplog.at_level(logging.WARNING, "autotvm"):
        simple(2, 3)
        simple(2, 3)
    assert [config.is_fallback for config in seen] == [True, True] and seen[0] is seen[1]
    assert [record.getMessage() for record in caplog.records if "tests/fallback" in record.getMessage()] == [
        "no configuration of ('tests/fallback', 2, 3) for target llvm is known: using a fallback, which may be much slower; tune it, or load a log"
    ]


def test_a_fallback_is_called_like_a_function(caplog: pytest.LogCaptureFixture) -> None:
    s, tensors = matmul(8, 8, 8)
    assert [step.code for step in s.sketch(tensors).steps] == ["SP", "SP", "RE"] and "('tests/matmul', 8, 8, 8)" in caplog.text


def test_templates_set_their_fallback(caplog: pytest.LogCaptureFixture) -> None:
    @autotvm.template("tests/falling_back")
    def falling_back(n: int) -> Instance:
        a = te.placeholder((n,), name="A")
        s = ansor.create_schedule(te.compute((n,), lambda i: a[i] + 1.0, name="C"))
        cfg = autotvm.get_config()
        cfg.define_split("tile", s["C"].op.axis[0], num_outputs=3)
        if isinstance(cfg, autotvm.FallbackConfigEntity):
            cfg.fallback_split("tile", [-1, 8, 4])
        cfg["tile"].apply(s, "C", s["C"].op.axis[0])
        return s, [a, *s.dag.outputs]

    for _ in range(2):
        (step,) = falling_back(128)[0].sketch().steps
        assert str(step) == "Split(stage='C', loop='i', lengths=(8, 4), parts=3)"
    assert len([record for record in caplog.records if "tests/falling_back" in record.getMessage()]) == 1


def test_two_halves_are_a_template() -> None:
    task = autotvm.task.create("tests/half", (te.placeholder((64,), name="X"),), "llvm")
    assert task.workload == ("tests/half", ("TENSOR", (64,), "float32")) and list(task.config_space) == ["twice", "tile"] and task.flop == 64
    s, (out, given) = task.instantiate(task.config_space.get(2 * 3))
    assert str(s).splitlines() == ["Split(stage='Y', loop='i', lengths=(8,), parts=2)", "Vectorize(stage='Y', loop='i_1', amount=1)"]
    assert get_workload([out]) == task.workload and given.is_placeholder


def test_a_schedule_needs_a_tensor_of_its_workload() -> None:
    with pytest.raises(DeclarationError, match="but its @register_topi_compute function declared none of them"):
        schedule_doubled([te.compute((4,), lambda i: te.const(1.0), name="Z")])


def test_a_label_does_not_change_the_key(caplog: pytest.LogCaptureFixture) -> None:
    x = te.placeholder((64,), name="X")
    plain = te.compute(x.shape, lambda i: x[i] * 2.0, name="Y")
    assert ansor.SearchTask(tensors=[x, doubled(x)]).workload_key == ansor.SearchTask(tensors=[x, plain]).workload_key


def test_arguments_as_a_log_holds_them() -> None:
    x = te.placeholder((2, 3), "int8", name="X")
    workload = args_to_workload((x, [1, (2,)], "same", None, True, np.int64(7)), "conv")
    assert workload == ("conv", ("TENSOR", (2, 3), "int8"), (1, (2,)), "same", None, True, 7) and type(workload[-1]) is int
    again = deserialize_args(workload[1:])[0]
    assert isinstance(again, Tensor) and (again.shape, again.dtype) == ((2, 3), "int8")
    with pytest.raises(DeclarationError, match="with the argument <object"):
        args_to_workload((object(),))


def test_an_unknown_template_raises_when_it_is_called() -> None:
    missing = find_template("tests/nobody")
    with pytest.raises(ConfigError, match="asked for a program of task 'tests/nobody', which is not registered .registered: .*'tests/matmul'"):
        missing(1, 2)
