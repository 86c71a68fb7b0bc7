import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.source import Argument, CSource, Pack
from ansor.codegen.toolchain import Compiler
from ansor.errors import MeasureError, ToolchainError
from ansor.measure.kernel import Kernel, aligned_empty, build_kernels

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
    (kernel,) = build_kernels([source_of("for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];")], compiler)
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

    a = torch.rand(1000, requires_grad=True)
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
        build_kernels([source_of("undeclared;")], compiler)


def test_constants_are_packed_once_and_saved(compiler: Compiler, source_of: MakeSource, tmp_path: Path) -> None:
    source = source_of("for (long i = 0; i < n; ++i) c[i] = a[i] + b[2 * i];")
    first, second, last = source.arguments
    constant = Argument("B", (1000,), "float32", "constant", Pack((1000, 2), ((1, 1),)))
    (kernel,) = build_kernels([replace(source, arguments=(first, constant, last))], compiler)
    a, b = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    assert np.array_equal(np.asarray(kernel(a, b)), a + b)
    kernel.bind_constants({"B": b})
    kernel.latency_s = 0.5
    loaded = Kernel.load(kernel.save(tmp_path / "saved"), compiler=compiler)
    assert np.array_equal(np.asarray(loaded(a)), a + b) and loaded.latency_s == 0.5 and loaded.source == source.text
    assert loaded.bound_constant("B").size == 2000
    with pytest.raises(MeasureError, match="no saved kernel"):
        Kernel.load(tmp_path)


def test_threads_share_one_pool(compiler: Compiler) -> None:
    arguments = tuple(Argument(name, (1000,), "float32", "output" if name == "C" else "input") for name in "ABC")
    kernels = build_kernels([CSource(PARALLEL, "sum", arguments, threads=2)] * 2, compiler)
    a, b = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    for kernel in kernels:
        assert np.array_equal(np.asarray(kernel(a, b)), a + b)
    assert kernels[0]._pool is kernels[1]._pool


def test_rank_zero_and_several_outputs(compiler: Compiler) -> None:
    text = "void two(void *const *args, unsigned char *w, void *f, void *p) { *(int *)args[1] = *(int *)args[0] + 1; *(double *)args[2] = 0.5; }"
    arguments = (Argument("A", (), "int32", "input"), Argument("B", (), "int32", "output"), Argument("C", (1, 1), "float64", "output"))
    (kernel,) = build_kernels([CSource(text, "two", arguments)], compiler)
    first, second = kernel(np.array(41, dtype=np.int32))
    assert first.shape == () and int(first) == 42 and second.shape == (1, 1) and second[0, 0] == 0.5


def test_torch_is_not_imported() -> None:
    import subprocess

    code = "import sys, ansor.measure.kernel, ansor.measure.measurer; assert 'torch' not in sys.modules and 'lightgbm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
