from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansor.errors import ModelError
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import NETWORKS, OPERATORS, ZooNetwork, ZooOperator, find

COMMANDS = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_can_be_declared(name: str) -> None:
    entry = find(name)
    assert isinstance(entry, ZooOperator) and entry.summary
    tensors = entry.function(*entry.args)
    assert len(entry.parameters) == len(entry.args) and all(isinstance(tensor, Tensor) for tensor in tensors)
    assert [tensor.is_placeholder for tensor in tensors] == [True] * (len(tensors) - 1) + [False]


def test_the_page_of_commands_lists_their_sizes() -> None:
    rows = [line.split("|")[1:3] for line in COMMANDS.read_text().splitlines() if line.startswith("| `")]
    told = {name.strip(" `"): sizes.strip(" `") for name, sizes in rows}
    for name, entry in OPERATORS.items():
        assert told[name] == ", ".join(f"{parameter}={size}" for parameter, size in zip(entry.parameters, entry.args, strict=True))


def test_networks_are_found_by_name() -> None:
    entry = find("resnet18")
    assert isinstance(entry, ZooNetwork) and entry is NETWORKS["resnet18"]


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(ModelError, match=r"did you mean resnet18\?"):
        find("resnet19")


def test_looking_up_imports_no_torch() -> None:
    code = "import sys; from ansor.zoo.catalogue import find; find('resnet18'); find('matmul'); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
