"""A kernel that is called wrongly says so with an AnsorError, which is the TypeError or ValueError that Python's own functions raise, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import ansor

ONE = "cpu -threads=1"
A, B = np.ones((4, 6), np.float32), np.ones((6, 5), np.float32)


@pytest.fixture(scope="module")
def kernel() -> ansor.Kernel:
    return ansor.auto_schedule("matmul", (4, 5, 6), ONE)


@pytest.mark.compiler
@pytest.mark.torch
def test_each_mistake_is_one_sentence(kernel: ansor.Kernel) -> None:
    import torch

    tensor = torch.ones(4, 6)
    mistakes: list[tuple[type[Exception], tuple[Any, ...], str]] = [
        (TypeError, (A,), r"takes 2 arguments \(A, B\), but 1 were given"),
        (ValueError, (B, A), r"must have shape \(4, 6\)"),
        (TypeError, (A.astype("float64"), B), "must have dtype float32, found float64"),
        (TypeError, (None, B), "must be an array or a tensor, found NoneType"),
        (TypeError, ([[1.0], [1.0, 2.0]], B), "must be an array or a tensor, found list"),
        (TypeError, (tensor.bfloat16(), B), "is a tensor of bfloat16, strided, which NumPy cannot hold"),
        (TypeError, (tensor.to_sparse(), B), "is a tensor of float32, sparse_coo, which NumPy cannot hold"),
        (TypeError, (tensor.to("meta"), B), "is on meta; this kernel is for the cpu"),
    ]
    for kind, args, sentence in mistakes:
        with pytest.raises(ansor.AnsorError, match=sentence) as caught:
            kernel(*args)
        assert isinstance(caught.value, kind) and "\n" not in str(caught.value)


@pytest.mark.compiler
def test_results_that_do_not_fit(kernel: ansor.Kernel) -> None:
    frozen = np.ones((4, 5), np.float32)
    frozen.flags.writeable = False
    mistakes: list[tuple[type[Exception], Any]] = [(ValueError, frozen), (TypeError, [frozen, frozen]), (ValueError, A)]
    for kind, out in mistakes:
        with pytest.raises(ansor.AnsorError) as caught:
            kernel(A, B, out=out)
        assert isinstance(caught.value, kind)


WRONG: Any = 3
ENTRIES: dict[str, tuple[Callable[[], object], str]] = {
    "timing": (lambda: ansor.TimingOptions(repeat=0), "TimingOptions"),
    "timing of a text": (lambda: ansor.TimingOptions(repeat=cast(Any, "a")), "repeat='a' is not a number"),
    "records": (lambda: ansor.load_records(WRONG), "asked for the records of 3"),
    "build": (lambda: ansor.build(WRONG, []), "give a schedule of ansor.create_schedule"),
    "lower": (lambda: ansor.lower(WRONG), "give a schedule of ansor.create_schedule"),
    "options": (lambda: ansor.SearchTask("matmul", (4, 4, 4)).tune(WRONG), "give ansor.TuningOptions"),
    "inputs": (lambda: ansor.SearchTask("matmul", (4, 4, 4), inputs={"A": WRONG}), "give a NumPy array"),
    "progress": (lambda: ansor.auto_schedule("matmul", (4, 4, 4), progress=WRONG), "asked for progress=3"),
    "target": (lambda: ansor.auto_schedule("matmul", (4, 4, 4), target=WRONG), "asked for target 3"),
    "rules": (lambda: ansor.auto_schedule("matmul", (4, 4, 4), rules=["nope"]), "the rules are"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_points_raise_errors_of_ours(entry: str) -> None:
    call, sentence = ENTRIES[entry]
    with pytest.raises(ansor.AnsorError, match=sentence):
        call()


@pytest.mark.compiler
def test_binding_what_is_no_mapping(kernel: ansor.Kernel) -> None:
    with pytest.raises(ansor.AnsorError, match="give constants by name"):
        kernel.bind_constants(WRONG)
