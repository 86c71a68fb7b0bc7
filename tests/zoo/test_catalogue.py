from __future__ import annotations

import subprocess
import sys

import pytest

from ansor.errors import ModelError
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import NETWORKS, OPERATORS, ZooNetwork, ZooOperator, find


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_can_be_declared(name: str) -> None:
    entry = find(name)
    assert isinstance(entry, ZooOperator) and entry.summary
    tensors = entry.function(*entry.args)
    assert len(entry.parameters) == len(entry.args) and all(isinstance(tensor, Tensor) for tensor in tensors)
    assert [tensor.is_placeholder for tensor in tensors] == [True] * (len(tensors) - 1) + [False]


def test_networks_are_found_by_name() -> None:
    entry = find("resnet18")
    assert isinstance(entry, ZooNetwork) and entry is NETWORKS["resnet18"]


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(ModelError, match=r"did you mean resnet18\?"):
        find("resnet19")


def test_looking_up_imports_no_torch() -> None:
    code = "import sys; from ansor.zoo.catalogue import find; find('resnet18'); find('matmul'); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
