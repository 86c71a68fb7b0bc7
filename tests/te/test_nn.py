"""The functions of `te.nn` as a whole: the table of the documentation, and what is said of keywords and functions that are not there."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ansor import te
from ansor.errors import ArgumentTypeError
from ansor.te import nn
from ansor.te.nn.misnamed import OTHER_NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "declarations.md"
FUNCTIONS = {name: value for name, value in vars(nn).items() if inspect.isfunction(value) and not name.startswith("_")}


def _signature(name: str, function: Callable[..., object]) -> str:
    """As in the table, without the optional name."""
    shown = []
    for one in inspect.signature(function).parameters.values():
        if one.name != "name" or one.default is one.empty:
            default = "" if one.default is one.empty else f"={one.default!r}"
            shown.append(f"{'*' if one.kind == one.VAR_POSITIONAL else ''}{one.name}{default}")
    return f"{name}({', '.join(shown)})"


def test_the_table_has_all_functions_with_their_signatures() -> None:
    table = PAGE.read_text().partition("## Functions of te.nn")[2].partition("\n## ")[0]
    listed = [span for line in table.splitlines() if line.startswith("| ") for span in re.findall(r"`([^`]+)`", line)]
    assert sorted(listed) == sorted(_signature(name, function) for name, function in FUNCTIONS.items())
    assert len(FUNCTIONS) > 150 and all("name" in inspect.signature(function).parameters for function in FUNCTIONS.values())


def test_keywords_that_were_meant() -> None:
    x, k = te.placeholder((1, 4, 8, 8), name="x"), te.placeholder((4, 4, 3, 3), name="k")
    with pytest.raises(ArgumentTypeError, match=r"^asked te.nn.conv2d for stride=1, which it does not take \(did you mean strides\?\); by name it takes data,"):
        nn.conv2d(x, k, stride=1)  # type: ignore[call-arg]
    with pytest.raises(ArgumentTypeError, match=r"^asked te.nn.einsum for nam='e', .* \(did you mean name\?\); by name it takes subscripts, name$"):
        nn.einsum("ij->i", x, nam="e")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        nn.relu(name="r")  # type: ignore[call-arg]


@pytest.mark.parametrize(("name", "hint"), [
    ("clamp", " (did you mean clip?)"), ("cat", " (did you mean concatenate?)"), ("max_pool2d", " (did you mean pool2d?)"), ("xyzzyx", ""), ("__wrong__", ""),
])  # fmt: skip
def test_functions_that_were_meant(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"module 'ansor.te.nn' has no attribute '{name}'{hint}") + "$"):
        getattr(nn, name)


def test_other_names_are_those_of_functions() -> None:
    assert set(OTHER_NAMES.values()) <= set(FUNCTIONS) and not set(OTHER_NAMES) & set(FUNCTIONS)
    assert pickle.loads(pickle.dumps(nn.relu)) is nn.relu
