"""PyTorch is seen where it is whole, and nothing that stands in its place is taken for it."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
import torch

from ansor.codegen import pool_library
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import find_compiler
from ansor.measure.kernel import build_kernels
from ansor.support.loaded import loaded_torch

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
