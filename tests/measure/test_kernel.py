import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.pool_library import shared_pool
from ansor.codegen.source import Argument, CSource, Pack
from ansor.codegen.toolchain import Compiler
from ansor.errors import MeasureError, ToolchainError
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.result_memory import aligned_empty

pytestmark = pytest.mark.compiler
MakeSource = Callable[..., CSource]
PARALLEL = """
typedef struct { const float *a, *b; float *c; } context;
static void body(void *p, long begin, long end) { context *x = p; for (long i = begin; i < end; ++i) x->c[i] = x->a[i] + x->b[i]; }
void sum(void *const *args, unsigned char *workspace, void (*parallel_for)(void *, void (*)(void *, long, long), void *, long), void *pool) {
    context x = {args[0], args[1], args[2]};
    parallel_for(pool, body, &x, 1000);
}
"""


@pytest.fixture(scope="module")
def add(compiler: Compiler, source_of: MakeSource) -> Kernel:
    (kernel,) = build_kernels([source_of("for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];")], CToolchain(compiler))
    return kernel


def test_any_layout_of_arrays(add: Kernel) -> None:
    a, b = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    for left in (a, aligned_empty((1000,), "float32"), np.repeat(a, 2)[::2], np.concatenate([a[:1], a])[1:]):
        left[...] = a
        assert np.array_equal(np.asarray(add(left, b)), a + b)


def test_out_is_filled_and_returned(add: Kernel) -> None:
    a = np.ones(1000, dtype=np.float32)
    for out in (aligned_empty((1000,), "float32"), np.empty(2000, dtype=np.float32)[::2]):
        assert add(a, a, out=out) is out and (out == 2).all()


@pytest.mark.torch
def test_torch_in_torch_out(add: Kernel) -> None:
    import torch

    a = torch.rand(1000)
    c = add(a, a)
    assert isinstance(c, torch.Tensor) and torch.equal(c, 2 * a.detach())
    out = torch.empty(1000)
    assert add(a, a, out=out) is out and torch.equal(out, c)


def test_mistakes_are_sentences(add: Kernel, compiler: Compiler, source_of: MakeSource) -> None:
    a = np.ones(1000, dtype=np.float32)
    with pytest.raises(TypeError, match=r"takes 2 arguments \(A, B\), but 1"):
        add(a)
    with pytest.raises(ValueError, match=r"input 'B' must have shape \(1000,\), found \(999,\)"):
        add(a, a[:-1])
    with pytest.raises(TypeError, match="'A' must have dtype float32, found float64"):
        add(a.astype(np.float64), a)
    with pytest.raises(TypeError, match="1 outputs, but out= holds 2"):
        add(a, a, out=(a, a))
    with pytest.raises(MeasureError, match="no constant 'A'"):
        add.bind_constants({"A": a})
    with pytest.raises(ToolchainError, match="undeclared"):
        build_kernels([source_of("undeclared;")], CToolchain(compiler))


def test_constants_are_packed_once_and_saved(compiler: Compiler, source_of: MakeSource, tmp_path: Path) -> None:
    source = source_of("for (long i = 0; i < n; ++i) c[i] = a[i] + b[2 * i];")
    first, second, last = source.arguments
    constant = Argument("B", (1000,), "float32", "constant", Pack((1000, 2), ((1, 1),)))
    (kernel,) = build_kernels([replace(source, arguments=(first, constant, last))], CToolchain(compiler))
    a, b = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    assert np.array_equal(np.asarray(kernel(a, b)), a + b)
    kernel.bind_constants({"B": b})
    kernel.latency_s = 0.5
    loaded = Kernel.load(kernel.save(tmp_path / "saved"))
    assert np.array_equal(np.asarray(loaded(a)), a + b) and loaded.latency_s == 0.5 and loaded.source == source.text
    assert loaded.bound_constant("B").size == 2000
    with pytest.raises(MeasureError, match="no saved kernel"):
        Kernel.load(tmp_path)


def test_threads_share_one_pool(compiler: Compiler) -> None:
    arguments = tuple(Argument(name, (1000,), "float32", "output" if name == "C" else "input") for name in "ABC")
    kernels = build_kernels([CSource(PARALLEL, "sum", arguments, threads=2)] * 2, CToolchain(compiler))
    a, b = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    for kernel in kernels:
        assert np.array_equal(np.asarray(kernel(a, b)), a + b)
    assert shared_pool(2, compiler) is shared_pool(2)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_gets_threads_of_its_own(compiler: Compiler) -> None:
    arguments = tuple(Argument(name, (1000,), "float32", "output" if name == "C" else "input") for name in "ABC")
    (kernel,) = build_kernels([CSource(PARALLEL, "sum", arguments, threads=2)], CToolchain(compiler))
    a, b = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    kernel(a, b)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(0 if np.array_equal(np.asarray(kernel(a, b)), a + b) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_out_may_be_an_input_or_overlap(compiler: Compiler, source_of: MakeSource) -> None:
    (kernel,) = build_kernels([source_of("for (long i = 0; i < n; ++i) c[i] = a[n - 1 - i] + b[i];")], CToolchain(compiler))
    room = np.arange(2000, dtype=np.float32)
    for start, end in ((0, 1000), (16, 1016), (992, 1992)):
        memory = aligned_empty((2000,), "float32")
        memory[...] = room
        expected = room[:1000][::-1] + room[1000:]
        out = memory[start:end]
        assert kernel(memory[:1000], memory[1000:], out=out) is out and np.array_equal(out, expected)
        assert np.array_equal(memory[end:], room[end:]) and np.array_equal(memory[:start], room[:start])


def test_two_outs_that_overlap_are_copied_one_after_the_other(compiler: Compiler) -> None:
    text = "void two(void *const *args, unsigned char *w, void *f, void *p) { int *a = args[0], *b = args[1], *c = args[2]; *b = *a; *c = *b + 1; }"
    arguments = (Argument("A", (1,), "int32", "input"), Argument("B", (1,), "int32", "output"), Argument("C", (1,), "int32", "output"))
    (kernel,) = build_kernels([CSource(text, "two", arguments)], CToolchain(compiler))
    out = aligned_empty((1,), "int32")
    assert kernel(np.array([41], dtype=np.int32), out=(out, out)) == (out, out) and out[0] == 42


def test_a_read_only_out_is_refused(add: Kernel) -> None:
    a, out = np.ones(1000, dtype=np.float32), np.zeros(1000, dtype=np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out= for 'C' is read-only; pass a writable array"):
        add(a, a, out=out)
    assert not out.any()


def test_saving_over_a_loaded_kernel(compiler: Compiler, source_of: MakeSource, tmp_path: Path) -> None:
    plus, minus = build_kernels([source_of(f"for (long i = 0; i < n; ++i) c[i] = a[i] {sign} b[i];") for sign in "+-"], CToolchain(compiler))
    a, b = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    loaded = Kernel.load(plus.save(tmp_path))
    minus.save(tmp_path)
    assert np.array_equal(np.asarray(loaded(a, b)), a + b) and np.array_equal(np.asarray(Kernel.load(tmp_path)(a, b)), a - b)
    assert np.array_equal(np.asarray(loaded(a, b)), a + b)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["constants.npz", "kernel.c", "kernel.json", "kernel.so"]


def test_memory_of_its_own_only_when_needed(compiler: Compiler, source_of: MakeSource) -> None:
    body = "for (long i = 0; i < n; ++i) { ((float *)workspace)[i] = a[i]; c[i] = ((float *)workspace)[i] + b[i]; }"
    (kernel,) = build_kernels([source_of(body, workspace_bytes=4000)], CToolchain(compiler))
    a, b = aligned_empty((1000,), "float32"), aligned_empty((1000,), "float32")
    a[...], b[...] = 1, 2
    c, workspace = aligned_empty((1000,), "float32"), aligned_empty((4000,), "uint8")
    kernel.prepared([array.ctypes.data for array in (a, b, c)], workspace.ctypes.data)()
    assert (c == 3).all() and kernel._workspace is None
    assert (np.asarray(kernel(a, b)) == 3).all() and kernel._workspace is not None


def test_rank_zero_and_several_outputs(compiler: Compiler) -> None:
    text = "void two(void *const *args, unsigned char *w, void *f, void *p) { *(int *)args[1] = *(int *)args[0] + 1; *(double *)args[2] = 0.5; }"
    arguments = (Argument("A", (), "int32", "input"), Argument("B", (), "int32", "output"), Argument("C", (1, 1), "float64", "output"))
    (kernel,) = build_kernels([CSource(text, "two", arguments)], CToolchain(compiler))
    first, second = kernel(np.array(41, dtype=np.int32))
    assert first.shape == () and int(first) == 42 and second.shape == (1, 1) and second[0, 0] == 0.5


def test_torch_is_not_imported() -> None:
    import subprocess

    code = "import sys, ansor.measure.kernel, ansor.measure.measurer; assert 'torch' not in sys.modules and 'lightgbm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
