"""The analysed declaration: order, names, cost, key."""

import subprocess
import sys

import pytest

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag, c_identifier, tidy_identifier
from ansor.te import workloads
from ansor.te.tensor import Tensor

MATMUL_KEY = "2465201a263db7fb5ceb9d487"


def matmul(n: int, names: tuple[str, str, str] = ("A", "B", "C"), constant: bool = False) -> list[Tensor]:
    a, b = te.placeholder((n, n), name=names[0]), te.placeholder((n, n), name=names[1], constant=constant)
    r = te.reduce_axis((0, n), name="r")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name=names[2])]


def test_stages_come_after_what_they_read_in_the_order_of_the_list() -> None:
    *_, c = first = matmul(8)
    d = te.placeholder((8, 8), name="D")
    r = te.reduce_axis((0, 8), name="r")
    e = te.compute((8, 8), lambda i, j: te.sum(c[i, r] * d[r, j], axis=r), name="E")
    assert [tensor.name for tensor in Dag([*first[:2], d, e]).stages] == ["A", "B", "D", "C", "E"]


def test_equal_names_are_made_different_and_readers_follow() -> None:
    a = te.placeholder((4,), name="x")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="x")
    c = te.compute((4,), lambda i: b[i] * 2.0, name="x")
    assert [tensor.name for tensor in Dag([a, c]).stages] == ["x", "x_1", "x_2"]
    assert str(Dag([a, c])).splitlines()[2] == "x_2[i] = (x_1[i] * 2.0)    (4) float32"


@pytest.mark.parametrize(("name", "identifier"), [("conv.1/bias", "conv_1_bias"), ("for", "t_for"), ("3x3", "t_3x3"), ("", "t"), ("größe", "gr__e")])
def test_names_become_c_identifiers(name: str, identifier: str) -> None:
    assert c_identifier(name) == identifier


@pytest.mark.parametrize(("name", "identifier"), [
    ("conv_bias_clip(1, 28, 28)", "conv_bias_clip_1_28_28"), ("conv__1__28_", "conv_1_28"), ("cpu -mcpu=x", "cpu_mcpu_x"), ("float", "t_float"), ("(", "t"),
])  # fmt: skip
def test_names_for_people_have_no_runs_of_underscores(name: str, identifier: str) -> None:
    assert tidy_identifier(name) == identifier


def test_flops_of_the_reference() -> None:
    assert Dag(matmul(512)).flop == 2 * 512**3
    *inputs, c = matmul(512)
    relu = te.compute((512, 512), lambda i, j: te.max(c[i, j], 0.0), name="relu")
    assert Dag([*inputs, relu]).flop == 2 * 512**3 + 512**2
    padded = te.compute((514, 512), lambda i, j: te.if_then_else(te.all(i >= 1, i < 513), c[i - 1, j], 0.0), name="pad")
    assert Dag([*inputs, padded]).flop == 2 * 512**3
    told = te.compute((512, 512), lambda i, j: c[i, j] + 1.0, name="told", attrs={"FLOP": 7})
    assert Dag([*inputs, told]).flop == 2 * 512**3 + 7
    compared = te.compute((512, 512), lambda i, j: te.if_then_else(c[i, j] > 0.0, c[i, j], 0.0), name="compared")
    assert Dag([*inputs, compared]).flop == 2 * 512**3 + 512**2


def test_the_key_depends_on_the_computation_only() -> None:
    key = Dag(matmul(256)).key
    assert key == Dag(matmul(256, ("left", "right", "product"))).key
    assert key != Dag(matmul(128)).key
    assert key != Dag(matmul(256, constant=True)).key
    assert key.startswith(MATMUL_KEY), "keys name what record files hold: they may only change with KEY_VERSION"


def test_the_key_is_the_same_in_another_process() -> None:
    code = "from ansor.te.workloads import softmax_nm; from ansor.ir.dag import Dag; print(Dag(softmax_nm(4, 16)).key)"
    keys = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout for seed in "12"
    }
    assert keys == {Dag(workloads.softmax_nm(4, 16)).key + "\n"}


def test_mistakes_are_explained() -> None:
    a, b, c = matmul(4)
    with pytest.raises(DeclarationError, match="reads placeholder B, which it does not list"):
        Dag([a, c])
    with pytest.raises(DeclarationError, match="lists one tensor twice"):
        Dag([a, a, b, c])
    with pytest.raises(DeclarationError, match="needs a computed tensor"):
        Dag([a, b])


def test_the_longest_chain_of_additions() -> None:
    assert Dag(workloads.double_matmul(8)).reduce_length == 16
    assert Dag(workloads.softmax_nm(4, 50)).reduce_length == 50, "maxima round nothing"
    x = te.placeholder((4,))
    assert Dag([x, te.compute((4,), lambda i: x[i] + 1.0)]).reduce_length == 1
