"""A kernel that is called wrongly says so with an AnsorError, which is the TypeError or ValueError that Python's own functions raise, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import ansor

ONE = "cpu -threads=1"
A, B = np.ones((4, 6), np.float32), np.ones((6, 5), np.float32)


def kernel_of(found: object) -> ansor.Kernel:
    assert isinstance(found, ansor.Kernel)
    return found


@pytest.fixture(scope="module")
def kernel() -> ansor.Kernel:
    return kernel_of(ansor.auto_schedule("matmul", (4, 5, 6), ONE))


@pytest.mark.compiler
@pytest.mark.torch
def test_each_mistake_is_one_sentence(kernel: ansor.Kernel) -> None:
    import torch

    tensor = torch.ones(4, 6)
    mistakes: list[tuple[type[Exception], tuple[Any, ...], str]] = [
        (TypeError, (A,), r"takes 2 arguments \(A, B\), but 1 was given"),
        (ValueError, (B, A), r"must have shape \(4, 6\)"),
        (TypeError, (A.astype("float64"), B), "must have dtype float32, found float64"),
        (TypeError, (None, B), "must be an array or a tensor, found NoneType"),
        (TypeError, ([[1.0], [1.0, 2.0]], B), "must be an array or a tensor, found list"),
        (TypeError, (tensor.bfloat16(), B), r"must have dtype float32, found bfloat16; convert it with .to\(torch.float32\)"),
        (TypeError, (tensor.to(torch.float8_e5m2), B), "is a tensor of float8_e5m2, strided, which NumPy cannot hold"),
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
    "nothing": (lambda: ansor.auto_schedule(cast(Any, None), (4,)), "asked to schedule None; give a function"),
    "early_stop": (lambda: ansor.compile(cast(Any, abs), (), early_stop=0), "asked for early_stop=0"),
    "timing": (lambda: ansor.TimingOptions(repeat=0), "TimingOptions"),
    "timing of a text": (lambda: ansor.TimingOptions(repeat=cast(Any, "a")), "repeat='a' is not a number"),
    "records": (lambda: ansor.load_records(WRONG), "asked for the records of 3"),
    "build": (lambda: ansor.build(WRONG, []), "give a schedule from ansor.create_schedule"),
    "lower": (lambda: ansor.lower(WRONG), "give a schedule from ansor.create_schedule"),
    "options": (lambda: ansor.SearchTask("matmul", (4, 4, 4)).tune(WRONG), "give ansor.TuningOptions"),
    "inputs": (lambda: ansor.SearchTask("matmul", (4, 4, 4), inputs={"A": WRONG}), "give a NumPy array"),
    "progress": (lambda: ansor.auto_schedule("matmul", (4, 4, 4), progress=WRONG), "asked for progress=3"),
    "target": (lambda: ansor.auto_schedule("matmul", (4, 4, 4), target=WRONG), "asked for target 3"),
    "sizes by position": (lambda: cast(Any, ansor.auto_schedule)("matmul", 64, 96, 128), r"give the function's own as args=\(64, 96, 128\)"),
    "trials by position": (lambda: cast(Any, ansor.auto_schedule)("matmul", (4, 4, 4), ONE, 8), "the other arguments by name, such as trials=8"),
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


@pytest.mark.compiler
@pytest.mark.torch
def test_inputs_may_be_given_by_name(kernel: ansor.Kernel) -> None:
    import torch

    want = A @ B
    a, b = torch.from_numpy(A), torch.from_numpy(B)
    for result in (kernel(A=A, B=B), kernel(A, B=B), kernel(B=B, A=A), kernel(B=b, A=a), kernel(a, B=b)):
        found: Any = result
        np.testing.assert_allclose(found, want, rtol=1e-5)
    mistakes: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((A,), {"b": B}, r"matmul\(4, 5, 6\) was called with an argument 'b'; it takes A, B, and out="),
        ((A,), {"A": A}, "with 'A' twice: by position and by name"),
        ((), {"B": B}, "was called without A; it takes A, B"),
        ((A, B, A), {"B": B}, "with 'B' twice"),
    ]
    for args, named, sentence in mistakes:
        with pytest.raises(ansor.AnsorError, match=sentence) as caught:
            kernel(*args, **named)
        assert isinstance(caught.value, TypeError)


@pytest.mark.compiler
@pytest.mark.torch
@pytest.mark.parametrize(
    "given, cure",
    [(lambda t: A.tolist(), r"found a list, which NumPy reads as float64; convert it with numpy.asarray\(..., 'float32'\)"),
     (lambda t: A.astype("float64"), r"found float64; convert it with \.astype\('float32'\)"),
     (lambda t: t.from_numpy(A).double(), r"found float64; convert it with \.to\(torch\.float32\)")],
)  # fmt: skip
def test_the_cure_for_a_dtype_suits_what_was_given(kernel: ansor.Kernel, given: Callable[[Any], Any], cure: str) -> None:
    import torch

    with pytest.raises(ansor.AnsorError, match=cure):
        kernel(given(torch), B)


@pytest.mark.compiler
@pytest.mark.torch
@pytest.mark.parametrize("direct", [True, False])
def test_a_tensor_that_requires_gradients_is_warned_of_once(direct: bool) -> None:
    import torch as library

    torch: Any = library
    kernel = kernel_of(ansor.auto_schedule("matmul", (4, 5, 6), ONE))
    a, b = torch.from_numpy(A.copy()).requires_grad_(), torch.from_numpy(B.copy())
    call: Callable[[], object] = (lambda: kernel(a, b)) if direct else (lambda: kernel(A=a, B=b))
    with torch.no_grad():
        call()
    assert kernel._quick is None  # which the call after the second would be
    with pytest.warns(ansor.AnsorWarning, match=r"matmul\(4, 5, 6\): argument 'A' requires gradients, but a kernel computes none"):
        call()
    call()


@pytest.mark.compiler
@pytest.mark.torch
def test_quick_calls_are_not_watched_for_gradients() -> None:
    """They have no time for it; the two before them, and any other, are watched, until one has warned."""
    import torch as library

    torch: Any = library
    kernel = ansor.auto_schedule("matmul", (4, 5, 6), ONE)
    a, b = torch.tensor(A), torch.tensor(B)
    kernel(a, b)
    kernel(a, b)
    a.requires_grad_()
    kernel(a, b)
    with pytest.warns(ansor.AnsorWarning, match="'A' requires gradients"):
        kernel(a, B=b)
    kernel(a, B=b)


@pytest.mark.compiler
def test_the_name_of_a_kernel_is_the_tasks_also_when_it_was_saved(kernel: ansor.Kernel, tmp_path: Path) -> None:
    assert repr(kernel).startswith("Kernel(matmul(4, 5, 6): ") and "matmul_4__5__6_" in kernel.source
    assert repr(ansor.Kernel.load(kernel.save(tmp_path / "k"))) == repr(kernel)
