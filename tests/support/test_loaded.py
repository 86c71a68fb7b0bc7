"""PyTorch is seen where it is whole, and nothing that stands in its place is taken for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from ansor.codegen import pool_library
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import find_compiler
from ansor.measure.kernel import build_kernels
from ansor.support.loaded import loaded_torch, torch_needed

pytestmark = pytest.mark.torch
TEXT = "void set(float **args, unsigned char *workspace, void *parallel_for, void *pool) { *args[1] = *args[0]; }"


def begun() -> ModuleType:
    """As another thread finds it while it is being imported."""
    module = ModuleType("torch")
    module.__file__ = torch.__file__
    return module


STANDS_IN = {"import forbidden": None, "without a file": ModuleType("torch"), "being imported": begun()}


def test_pytorch_is_seen() -> None:
    assert loaded_torch() is torch


def test_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    assert loaded_torch() is None


@pytest.mark.parametrize("name", STANDS_IN)
@pytest.mark.compiler
def test_kernels_run_whatever_stands_in_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", STANDS_IN[name])
    monkeypatch.setattr(pool_library, "_pools", {})
    monkeypatch.setattr(pool_library, "_apart", set())
    assert loaded_torch() is None
    assert pool_library.shared_pool(2) is pool_library.shared_pool(2)
    arguments = (Argument("A", (1,), "float32", "input"), Argument("B", (1,), "float32", "output"))
    (kernel,) = build_kernels([CSource(TEXT, "set", arguments, threads=2)], CToolchain(find_compiler()))
    for number in range(4):
        assert np.asarray(kernel(np.full(1, number, "float32"))) == number


WITHOUT = """
import subprocess
import sys
from pathlib import Path
sys.modules["torch"] = None
import ansor
calls = {
    "compile": lambda: ansor.compile(object(), ()), "compile_batches": lambda: ansor.compile_batches(object(), ()), "export": lambda: ansor.export(0, (), "o"),
    "compile_int8": lambda: ansor.compile_int8(object(), ()), "extract_tasks": lambda: ansor.extract_tasks(object(), ()),
    "extract_int8_tasks": lambda: ansor.extract_int8_tasks(object(), ()), "ansor.CompiledNetwork": lambda: ansor.CompiledNetwork,
}
for name, call in calls.items():
    try:
        call()
    except ansor.AnsorError as error:
        assert isinstance(error, ImportError) and f"asked for {name}, which needs PyTorch, but the package torch is not installed" in str(error), error
    else:
        raise AssertionError(name)
from ansor.cli import main
assert [main([command, "resnet8"]) for command in ("compile", "bench")] == [1, 1]
"""


def test_what_needs_pytorch_says_so_where_it_is_not_installed(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert ran.returncode == 0 and ran.stderr.count("ansor: asked for resnet8, which needs PyTorch") == 2, ran.stderr


def test_other_missing_modules_are_passed_on() -> None:
    with pytest.raises(ModuleNotFoundError, match="other"), torch_needed("this"):
        raise ModuleNotFoundError("other", name="other")
