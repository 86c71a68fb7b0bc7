"""Lookup keys of target texts."""

import pytest

from ansor.compat.common.target_keys import keys, model, modern


@pytest.mark.parametrize("text, wanted", [
    ("llvm", ("cpu",)), ("cuda -model=v100", ("cuda", "gpu")), ("opencl -device=mali", ("mali", "opencl", "gpu")),
    ("llvm -keys=arm_cpu,cpu -device=arm_cpu", ("arm_cpu", "cpu")),
    ("mine", ("mine",)), ("", ("",)), ("llvm -device arm_cpu", ("arm_cpu", "cpu")),
])  # fmt: skip
def test_keys(text: str, wanted: tuple[str, ...]) -> None:
    assert keys(text) == wanted


def test_model() -> None:
    assert [model(text) for text in ("llvm", "llvm -model=rk3399 -x", "llvm -xmodel=3")] == ["unknown", "rk3399", "unknown"]


def test_modern() -> None:
    assert modern("llvm -target=arm -mcpu=x") == "llvm -mtriple=arm -mcpu=x" and modern("llvm -mtarget=x -target") == "llvm -mtarget=x -target"
