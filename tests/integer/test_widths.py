"""In which form kernels multiply: weights of 16 bits where there is flash, unsigned bytes and whole groups of channels where instructions have those."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.integer.declare import declaration
from ansor.integer.from_torch import from_torch
from ansor.integer.network import IntegerNetwork, IntegerTensor, Quantisation
from ansor.integer.network_code import Limits
from ansor.integer.operators import SIGNED, Convolution, Dense, Operator, Reshape, Table
from ansor.integer.widths import in_form, narrow, unsigned_between, widened
from ansor.targets.base import parse_target
from tests.integer.models import samples, small

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def network() -> IntegerNetwork:
    return from_torch(small(), samples(), "small")


def wide(network: IntegerNetwork) -> list[str]:
    return [one.output for one in network.operators if isinstance(one, (Convolution, Dense)) and one.form.wide]


def test_where_pairs_are_multiplied_and_only_there(network: IntegerNetwork) -> None:
    found = widened(network, parse_target("micro -board=mps2-an386"), Limits())
    candidates = [one.output for one in network.operators if isinstance(one, Dense) or isinstance(one, Convolution) and not one.depthwise]
    assert wide(found) == candidates and wide(narrow(found)) == []
    assert widened(network, parse_target("micro -board=qemu-riscv32"), Limits()) is network
    assert found.constant_bytes > network.constant_bytes


def test_three_channels_become_four(network: IntegerNetwork) -> None:
    found = widened(network, parse_target("micro -board=mps2-an386"), Limits())
    first = next(one for one in found.operators if isinstance(one, Convolution))
    assert first.weights.shape[2] == 3 and first.constants["weights"].shape[2] == 4 and not first.constants["weights"][:, :, 3].any()
    _, weights, *_ = declaration(first, [found.tensors[name].shape for name in first.inputs])
    assert weights.shape == first.constants["weights"].shape and weights.dtype == "int16"


def test_what_there_is_flash_for(network: IntegerNetwork) -> None:
    target = parse_target("micro -board=mps2-an386")
    assert wide(widened(network, target, Limits(flash_bytes=network.constant_bytes))) == []
    some = wide(widened(network, target, Limits(flash_bytes=(network.constant_bytes + 300) * 4 // 3)))
    assert 0 < len(some) < len(wide(widened(network, target, Limits())))


@pytest.mark.parametrize(
    ("target", "unsigned", "multiple"), [("cpu -mcpu=znver4", True, 4), ("cpu -mcpu=haswell", False, 2), ("arm -mcpu=cortex-a76", False, 4)]
)
def test_processors_with_instructions_for_bytes(network: IntegerNetwork, target: str, unsigned: bool, multiple: int) -> None:
    found = in_form(network, parse_target(target), Limits())
    full = [one for one in found.operators if isinstance(one, Convolution) and not one.depthwise]
    assert {(one.form.unsigned, one.form.multiple) for one in full} == {(unsigned, multiple)} and wide(found) == []
    assert full[0].weights.shape[2] == 3 and full[0].constants["weights"].shape[1:3] == (1, 9 + -9 % multiple)
    between = {tensor.dtype for name, tensor in found.tensors.items() if name not in (*found.inputs, *found.outputs)}
    assert between == {"uint8" if unsigned else "int8"} and {found.tensors[name].dtype for name in (*found.inputs, *found.outputs)} == {"int8"}
    assert {tensor.dtype for tensor in narrow(found).tensors.values()} == {"int8"}
    assert all(one.form.unsigned is unsigned for one in found.operators if isinstance(one, Dense))
    assert {one.form for one in narrow(found).operators if isinstance(one, (Convolution, Dense))} == {SIGNED}


def test_bytes_that_no_instruction_multiplies_stay_as_they_are(network: IntegerNetwork) -> None:
    assert in_form(network, parse_target("micro -board=qemu-riscv32"), Limits()) is network


def test_other_names_of_inputs_and_outputs_stay_as_they_are() -> None:
    same, image, flat = np.arange(-128, 128).astype(np.int8), (1, 2, 2, 4), (1, 16)
    operators: list[Operator] = [Reshape("flat", ("x",), flat), Table("a", ("x",), same), Reshape("y", ("a",), flat), Reshape("z", ("a",), (4, 4))]
    shapes = {"x": image, "flat": flat, "a": image, "y": flat, "z": (4, 4)}
    tensors = {name: IntegerTensor(name, shape, Quantisation(1.0, 0)) for name, shape in shapes.items()}
    network = IntegerNetwork("names", ("x",), ("y",), tensors, tuple(operators)).checked()
    assert {tensor.dtype for tensor in unsigned_between(network).tensors.values()} == {"int8"}
