"""How large files, functions and lists of parameters may be."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("ansor", "rules", "cost_model", "measure", "targets")

LINES_OF_A_FILE = 500
LINES_OF_A_FUNCTION = 40
PARAMETERS = 8

OF_TVM = ("ansor/auto_scheduler/", "ansor/autotvm/", "ansor/compat/")
"""Where signatures are those of TVM."""

OPERATORS = {
    "ansor/te/nn/conv.py": {"conv1d", "conv2d", "conv3d"},
    "ansor/te/nn/conv_transpose.py": {"conv1d_transpose", "conv2d_transpose", "conv3d_transpose"},
    "ansor/te/nn/pooling.py": {"pool1d", "pool2d", "pool3d"},
    "ansor/te/nn/pooling_gradient.py": {"pool_grad"},
    "ansor/te/workloads.py": {"conv2d_nchw_bn_relu", "conv2d_winograd_nhwc", "conv1d", "conv2d", "conv3d", "depthwise_conv2d", "capsule_conv2d"},
    "ansor/zoo/operators.py": {"conv2d", "group_conv2d", "dilated_conv2d", "conv3d", "capsule_conv2d"},
    "ansor/dataset/operators.py": {"conv2d"},
}
"""Operators for people: their parameters are sizes in the order in which the field, record files and `--args` give them. Nothing else may have so many."""

CONSTRUCTORS = {
    ("measure/record.py", "Record"): "a line of a record file, field by field: a million are held, each one tuple without others in it",
}
"""Dataclasses and named tuples with more fields than that, and why."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _files() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text()


FILES = dict(_files())


@cache
def _functions() -> list[tuple[str, Function]]:
    """Every function and its file. Parsing takes seconds, so not while tests are collected."""
    return [(file, node) for file, text in FILES.items() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _parameters(function: Function) -> int:
    """How many, without `self` and `cls`; what stands behind * and ** is one each."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")]) + (given.vararg is not None) + (given.kwarg is not None)


def test_no_file_is_long() -> None:
    long = {file: count for file, text in FILES.items() if (count := len(text.splitlines())) > LINES_OF_A_FILE}
    assert not long


def test_no_function_is_long() -> None:
    """Signature and docstring included."""
    lengths = {f"{file}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1 for file, node in _functions()}
    assert not {name: length for name, length in lengths.items() if length > LINES_OF_A_FUNCTION}


def test_no_function_or_constructor_has_many_parameters() -> None:
    many = {(file, node.name) for file, node in _functions() if _parameters(node) > PARAMETERS and not file.startswith(OF_TVM)}
    assert many == {(file, name) for file, names in OPERATORS.items() for name in names}


def _constructors() -> Iterator[tuple[str, str, int]]:
    """File, class and number of fields, inherited ones too, of every dataclass and named tuple whose constructor is generated."""
    for file in FILES:
        if file.endswith("__main__.py") or file.startswith(OF_TVM):
            continue
        parts = Path(file).with_suffix("").parts
        module = importlib.import_module(".".join(parts if parts[0] == "ansor" else ("ansor", *parts)).removesuffix(".__init__"))
        for kind in vars(module).values():
            if not isinstance(kind, type) or kind.__module__ != module.__name__:
                continue
            if dataclasses.is_dataclass(kind):
                yield file, kind.__name__, sum(one.init for one in dataclasses.fields(kind))
            elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
                yield file, kind.__name__, len(kind._fields)


def test_no_generated_constructor_has_many_parameters() -> None:
    found = list(_constructors())
    assert len(found) > 300, "this finds too few"
    assert {(file, name) for file, name, count in found if count > PARAMETERS} == set(CONSTRUCTORS)
