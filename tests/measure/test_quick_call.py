"""Quick calls: what they take gives what the other way gives, to the byte; what they do not take they leave to it; memory lives as long as it is seen."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import ALIGNMENT, Argument, CSource, Pack
from ansor.codegen.toolchain import Compiler
from ansor.errors import AnsorError, AnsorWarning, CacheError, MachineTrouble, ToolchainError
from ansor.measure import quick_call
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.result_memory import aligned_empty

pytestmark = [
    pytest.mark.torch, pytest.mark.compiler,
    pytest.mark.filterwarnings("ignore:.*requires gradients"), pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*the matrix subclass:PendingDeprecationWarning"),
]  # fmt: skip
Array = Any
SHAPE = (4, 6)
TEXT = """
typedef void (*loop)(void *, long, long);
struct all { CTYPE *a, *b, *c, *d; };
static void body(void *context, long begin, long end) {
    struct all *all = context;
    CTYPE *a = all->a, *b = all->b, *c = all->c, *d = all->d;
    for (long i = begin; i < end; i++) c[i] = a[24 - 1 - i] + b[i % 6];
    if (d && !begin) *d = a[0];
}
void twice(void *const *args, unsigned char *workspace, void (*parallel_for)(void *, loop, void *, long), void *pool) {
    struct all all = {args[0], args[1], args[2], OUTPUTS > 1 ? args[3] : 0};
    if (parallel_for) parallel_for(pool, body, &all, 24);
    else body(&all, 0, 24);
}
"""
C_TYPES = {"float32": "float", "int8": "signed char", "int64": "long", "bool": "unsigned char", "float64": "double"}


def source(dtype: str = "float32", outputs: int = 1, threads: int = 1) -> CSource:
    """c = a, backwards, + b, and, as a second output of no dimension, the first element of a."""
    arguments = (Argument("A", SHAPE, dtype, "input"), Argument("B", (6,), dtype, "constant"), Argument("C", SHAPE, dtype, "output"))
    more = (Argument("D", (), dtype, "output"),) if outputs > 1 else ()
    return CSource(TEXT.replace("CTYPE", C_TYPES[dtype]).replace("OUTPUTS", str(outputs)), "twice", (*arguments, *more), threads=threads)


def built(compiler: Compiler, *args: Any, **named: Any) -> Kernel:
    return build_kernels([source(*args, **named)], CToolchain(compiler))[0]


def warmed(kernel: Kernel, dtype: str = "float32") -> Kernel:
    """Calls with arrays and with tensors are quick."""
    a, b = np.ones(SHAPE, dtype), np.ones(6, dtype)
    for _ in range(2):
        kernel(a, b)
    for _ in range(2):
        kernel(torch.from_numpy(a), torch.from_numpy(b))
    assert kernel._quick is not None
    return kernel


@pytest.fixture(scope="module", params=["by DLPack", "by methods"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """PyTorch before 2.10 has no table of functions."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "by methods":
            patch.setattr(quick_call, "_torch_functions", lambda torch: 0)
        yield str(request.param)


@pytest.fixture(scope="module")
def kernel(compiler: Compiler, way: str) -> Kernel:
    return warmed(built(compiler))


def a_and_b(dtype: str = "float32") -> tuple[Array, Array]:
    numbers = np.random.default_rng(0)
    return numbers.integers(0, 2, SHAPE).astype(dtype), numbers.integers(0, 2, 6).astype(dtype)


class Subclass(np.ndarray[Any, Any]):
    """An array of somebody else's."""


class SubclassOfTensor(torch.Tensor):
    """A tensor of somebody else's."""


class Interface:
    """Only `__array__`."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> Array:
        return self.array


class Lies(np.ndarray[Any, Any]):
    """Says that it has the shape and type of another."""

    shape: Any = SHAPE
    dtype: Any = np.dtype("float32")


class LiesOfInterface:
    """An invalid interface."""

    __array_interface__ = {"shape": SHAPE, "typestr": 4, "version": 3}


def shifted(x: Array, by: int) -> Array:
    """The same values, by so many bytes from an aligned place."""
    room = aligned_empty((x.nbytes + ALIGNMENT,), "uint8")[by : by + x.nbytes]
    found = room.view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


PLAIN: dict[str, Callable[[Array], Any]] = {
    "aligned": lambda x: shifted(x, 0),
    "by an element": lambda x: shifted(x, x.itemsize),
    "array": lambda x: x.copy(),
    "read-only": read_only,
    "part": lambda x: np.concatenate([x, x])[: len(x)],
    "tensor": lambda x: torch.from_numpy(x.copy()),
    "shifted tensor": lambda x: torch.from_numpy(shifted(x, x.itemsize)),
    "parameter": lambda x: torch.nn.Parameter(torch.from_numpy(x.copy()), requires_grad=x.dtype.kind == "f"),
    "gradients": lambda x: torch.from_numpy(x.copy()).requires_grad_(x.dtype.kind == "f"),
    "inference": lambda x: torch.inference_mode()(lambda: torch.from_numpy(x.copy()).clone())(),
    "negated twice": lambda x: torch._neg_view(torch._neg_view(torch.from_numpy(x.copy()))) if x.dtype.kind == "f" else x.copy(),
    "stand-in of size one": lambda x: np.lib.stride_tricks.as_strided(x[None], strides=(4096, *x.strides))[0],
    "transposed twice": lambda x: x.T.T,
}
"""Taken by quick calls."""

OTHERS: dict[str, Callable[[Array], Any]] = {
    "by a byte": lambda x: shifted(x, 1),
    "short": lambda x: x[:-1],
    "more dimensions": lambda x: x[None],
    "none": lambda x: x.reshape(-1)[0],
    "no dimension": lambda x: np.array(3, x.dtype),
    "empty": lambda x: x[:0],
    "backwards": lambda x: x[::-1],
    "columns": lambda x: np.asfortranarray(x),
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "expanded": lambda x: np.broadcast_to(x[:1], x.shape),
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "double": lambda x: x.astype("float64"),
    "complex": lambda x: x.astype("complex64"),
    "half": lambda x: x.astype("float16"),
    "integers": lambda x: x.astype("int32"),
    "unsigned": lambda x: x.astype("uint8"),
    "objects": lambda x: x.astype(object),
    "texts": lambda x: x.astype(str),
    "times": lambda x: x.astype("int64").view("datetime64[s]"),
    "records": lambda x: np.zeros(x.shape, [("f", "f4")]),
    "subclass": lambda x: x.view(Subclass),
    "matrix": lambda x: np.asmatrix(x),
    "masked": lambda x: np.ma.masked_array(x, mask=x > 0),
    "list": lambda x: x.tolist(),
    "tuple": lambda x: tuple(x),
    "ragged": lambda x: [[1.0], [1.0, 2.0]],
    "nothing": lambda x: None,
    "number": lambda x: 3,
    "text": lambda x: "abc",
    "memoryview": lambda x: memoryview(x.copy()),
    "bytes": lambda x: x.tobytes(),
    "interface": Interface,
    "lies": lambda x: x[:1].copy().view(Lies),
    "interface that lies": lambda x: LiesOfInterface(),
    "type": lambda x: np.ndarray,
    "meta": lambda x: torch.from_numpy(x.copy()).to("meta"),
    "negated": lambda x: torch._neg_view(torch.from_numpy(x.copy())) if x.dtype.kind == "f" else x[:-1],
    "sparse": lambda x: torch.from_numpy(x.copy()).to_sparse(),
    "bfloat16": lambda x: torch.from_numpy(x.copy()).bfloat16(),
    "long tensor": lambda x: torch.from_numpy(x.copy()).int(),
    "tensor's columns": lambda x: torch.from_numpy(np.asfortranarray(x)) if x.ndim > 1 else torch.from_numpy(np.repeat(x, 2))[::2],
    "expanded tensor": lambda x: torch.from_numpy(x[:1].copy()).expand(x.shape),
    "tensor without memory": lambda x: torch._efficientzerotensor(x.shape),
    "tensor of others": lambda x: torch.from_numpy(x.copy()).as_subclass(SubclassOfTensor),
}  # fmt: skip
"""Converted, copied or refused in the other way."""


def outcome(call: Callable[[], Any]) -> tuple[object, ...]:
    """What a call gives, so that it can be compared: the sentence, or type, dtype, shape and bytes of each result."""
    try:
        found = call()
    except AnsorError as error:
        return type(error), str(error)
    return type(found), *(_contents(one) for one in (found if isinstance(found, tuple) else (found,)))


def _contents(result: Any) -> tuple[object, ...]:
    array = np.asarray(result.detach() if isinstance(result, torch.Tensor) else result)
    return type(result), str(array.dtype), array.shape, array.tobytes()


def both_ways(kernel: Kernel, given: tuple[Any, ...], out: Callable[[], Any] = lambda: None) -> None:
    """The same outcome, and the same in `out`."""
    first, second = out(), out()
    quick, other = outcome(lambda: kernel(*given, out=first)), outcome(lambda: kernel._call_checked(given, second, {}))
    assert quick == other, (given, quick, other)
    if isinstance(first, np.ndarray) and first.dtype != object:
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("first", PLAIN)
def test_plain_arguments_are_taken_with_the_same_result(first: str, kernel: Kernel) -> None:
    a, b = a_and_b()
    for second, made in PLAIN.items():
        given = (PLAIN[first](a), made(b))
        both_ways(kernel, given)
        assert kernel._quick is not None and kernel._quick(given, None) is not None, second


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore:.*PyTorch does not support non-writable:UserWarning")
def test_others_have_the_same_outcome(name: str, kernel: Kernel) -> None:
    a, b = a_and_b()
    quick = kernel._quick
    for given in ((OTHERS[name](a), b), (a, OTHERS[name](b)), (torch.from_numpy(a), OTHERS[name](b)), (OTHERS[name](a), OTHERS[name](b))):
        both_ways(kernel, given)
    assert quick is not None and quick((OTHERS[name](a), b), None) is None


def test_the_number_of_arguments(kernel: Kernel) -> None:
    a, b = a_and_b()
    for given in ((), (a,), (a, b, b), (b, a)):
        both_ways(kernel, given)


OUTS: dict[str, Callable[[Array], Any]] = {
    **PLAIN, **OTHERS, "pair": lambda x: (x, x), "one in a tuple": lambda x: (x.copy(),), "one in a list": lambda x: [x.copy()],
}  # fmt: skip


@pytest.mark.parametrize("name", OUTS)
@pytest.mark.filterwarnings("ignore:.*PyTorch does not support non-writable:UserWarning")
def test_results_into_arrays_of_the_caller(name: str, kernel: Kernel) -> None:
    a, b = a_and_b()
    made = OUTS[name]
    both_ways(kernel, (a, b), lambda: made(np.zeros(SHAPE, "float32")))
    both_ways(kernel, (torch.from_numpy(a), b), lambda: made(np.zeros(SHAPE, "float32")))
    if name in ("array", "aligned", "by an element", "tensor", "one in a tuple"):
        out = made(np.zeros(SHAPE, "float32"))
        assert kernel._quick is not None and kernel._quick((a, b), out) is out and kernel(a, b, out=out) is out


@pytest.mark.parametrize("start", [0, 1, 8, 16, 23, 24])
def test_out_may_overlap_arguments(start: int, kernel: Kernel) -> None:
    for reading in (0, 1, 16):
        rooms = [aligned_empty((64,), "float32") for _ in range(2)]
        results: list[Any] = []
        calls: list[Callable[..., Any]] = [lambda g, o: kernel(*g, out=o), lambda g, o: kernel._call_checked(g, o, {})]
        for room, call in zip(rooms, calls, strict=True):
            room[...] = np.arange(64)
            results.append(call((room[reading : reading + 24].reshape(SHAPE), room[:6]), room[start : start + 24].reshape(SHAPE)))
        assert rooms[0].tobytes() == rooms[1].tobytes() and results[0].tobytes() == results[1].tobytes()


def test_several_outputs_and_their_overlaps(compiler: Compiler, way: str) -> None:
    kernel = warmed(built(compiler, outputs=2))
    a, b = a_and_b()
    for given in ((a, b), (torch.from_numpy(a), b)):
        both_ways(kernel, given)
        found = kernel(*given)
        assert isinstance(found, tuple) and kernel._quick is not None and type(kernel._quick(given, None)) is tuple
    calls: list[Callable[..., Any]] = [lambda o: kernel(a, b, out=o), lambda o: kernel._call_checked((a, b), o, {})]
    for place in range(0, 96, 4):
        rooms = [aligned_empty((128,), "uint8") for _ in range(2)]
        for room, call in zip(rooms, calls, strict=True):
            room[...] = 1
            outs = (room[:96].view("float32").reshape(SHAPE), room[place : place + 4].view("float32").reshape(()))
            assert all(one is other for one, other in zip(call(outs), outs, strict=True))
        assert rooms[0].tobytes() == rooms[1].tobytes()
    both_ways(kernel, (a, b), lambda: (np.zeros(SHAPE, "float32"),))
    both_ways(kernel, (a, b), lambda: [np.zeros(SHAPE, "float32"), torch.zeros(())])


@pytest.mark.parametrize("dtype", C_TYPES)
def test_every_dtype_is_told_from_the_others(dtype: str, compiler: Compiler, way: str) -> None:
    kernel = warmed(built(compiler, dtype), dtype)
    a, b = a_and_b(dtype)
    for other in ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool", "longlong", "complex128"):
        both_ways(kernel, (a.astype(other), b))
    for tensor in (torch.from_numpy(a), torch.from_numpy(a).int(), torch.from_numpy(a).bool(), torch.from_numpy(a).bfloat16()):
        both_ways(kernel, (tensor, b))
    assert kernel._quick is not None and kernel._quick((a, torch.from_numpy(b)), None) is not None


def test_arguments_at_random(compiler: Compiler, way: str) -> None:
    kernel, choose = warmed(built(compiler)), random.Random(0)
    makers = [*PLAIN.values()] * 2 + [*OTHERS.values()]
    for _ in range(400):
        a, b = a_and_b()
        given = tuple(choose.choice(makers)(one) for one in (a, b, a, b)[: choose.choice((2, 2, 2, 2, 1, 3, 4))])
        out = choose.choice(makers) if choose.random() < 0.3 else None
        both_ways(kernel, given, lambda out=out: None if out is None else out(np.zeros(SHAPE, "float32")))  # type: ignore[misc]


def test_bound_constants_and_their_change(compiler: Compiler, way: str) -> None:
    packed = replace(source().arguments[1], pack=Pack((6,), ((1,),)))
    (kernel,) = build_kernels([replace(source(), arguments=(source().arguments[0], packed, source().arguments[2]))], CToolchain(compiler))
    a, b = a_and_b()
    for _ in range(4):
        kernel(a, b)
    assert kernel._quick is None  # packing is not done in C
    for constant in (b, 2 * b):
        kernel.bind_constants({"B": constant})
        for _ in range(4):
            assert np.array_equal(np.asarray(kernel(a)), a.reshape(-1)[::-1].reshape(SHAPE) + constant)
        assert kernel._quick is not None
        both_ways(kernel, (a, b))
    quick: Any = kernel._quick
    gc.collect()
    kernel.bind_constants({"B": b})  # who is in the midst of a call has the old one
    gc.collect()
    assert np.array_equal(quick((a,), None), a.reshape(-1)[::-1].reshape(SHAPE) + 2 * b)


def test_modes_of_pytorch(kernel: Kernel) -> None:
    a, b = (torch.from_numpy(one) for one in a_and_b())
    want = kernel(a, b)
    for mode in (torch.device("meta"), torch.inference_mode(), torch.no_grad()):
        with mode:
            found = kernel(a, b)
            assert isinstance(found, torch.Tensor) and found.device.type == "cpu"
        assert torch.equal(found, want)  # type: ignore[arg-type]
    with pytest.raises(AnsorError):
        torch.vmap(lambda one: kernel(one, b))(torch.zeros(3, *SHAPE))
    with pytest.raises(AnsorError):
        torch.func.jvp(lambda one: kernel(one, b), (a,), (a,))


SHARES: list[Callable[[Any], Any]] = [
    lambda t: t[2:], lambda t: t.T, lambda t: np.asarray(t).data, lambda t: torch.as_tensor(t)[1:], lambda t: np.asarray(t)[1:],
]  # fmt: skip


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("tensors", [False, True])
def test_memory_is_used_again_when_nobody_sees_it(share: Callable[[Any], Any], tensors: bool, kernel: Kernel) -> None:
    a, b = a_and_b()
    given = (torch.from_numpy(a), b) if tensors else (a, b)

    def place(result: Any) -> int:
        return int(np.asarray(result).ctypes.data)

    first: Any = kernel(*given)
    at, shared = place(first), share(first)
    assert at % ALIGNMENT == 0
    del first
    assert place(kernel(*given)) != at
    held = [kernel(*given) for _ in range(5)]
    assert len({place(one) for one in held} | {at}) == 6
    del shared, held
    gc.collect()
    again, once_more = place(kernel(*given)), place(kernel(*given))
    assert again == once_more  # one that came back


@pytest.mark.parametrize("tensors", [False, True])
def test_results_outlive_their_kernel(tensors: bool, compiler: Compiler, way: str) -> None:
    kernel = warmed(built(compiler))
    a, b = a_and_b()
    result: Any = kernel(torch.from_numpy(a), b) if tensors else kernel(a, b)
    gone, quick = weakref.ref(kernel), kernel._quick
    del kernel
    gc.collect()
    assert gone() is None
    del quick
    gc.collect()
    result += 1
    assert np.array_equal(np.asarray(result), a.reshape(-1)[::-1].reshape(SHAPE) + b + 1)


def test_references_are_neither_kept_nor_lost(kernel: Kernel) -> None:
    a, b = a_and_b()
    out, tensor, wrong = np.zeros(SHAPE, "float32"), torch.from_numpy(a), np.zeros(3, "float32")
    watched = [a, b, out, tensor, wrong, np.dtype("float32"), np.ndarray, torch.Tensor, None, True, False, torch.float32, "is_neg", ()]
    quick = kernel._quick
    assert quick is not None

    def calls() -> None:
        for _ in range(500):
            kernel(a, b), kernel(tensor, b), kernel(a, b, out=out)
            quick((wrong, b), None), quick((a, None), None), quick((a, b), wrong), quick((), None), quick((a, b), (out,))

    calls()
    gc.collect()
    before = [sys.getrefcount(one) for one in watched]
    calls()
    gc.collect()
    assert max(abs(after - one) for after, one in zip([sys.getrefcount(one) for one in watched], before, strict=True)) < 50


@pytest.mark.parametrize("threads", [1, 2])
def test_several_python_threads_call_one_kernel(threads: int, compiler: Compiler, way: str) -> None:
    kernel = warmed(built(compiler, threads=threads))
    wrong: list[object] = []

    def caller(number: int) -> None:
        a, b = np.full(SHAPE, number, "float32"), np.arange(6, dtype="float32")
        given: tuple[Any, ...] = (torch.from_numpy(a), b) if number % 2 else (a, b)
        held: list[Any] = []
        for k in range(400):
            held = [*held[-3:], kernel(*given) if k % 5 else kernel(A=given[0], B=given[1])]
            wrong.extend(one for one in held if not np.array_equal(np.asarray(one), a + b))

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(4)]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert not wrong


def test_finalizers_call_the_kernel_that_is_called(kernel: Kernel) -> None:
    """In the midst of a call, whose copies they leave alone."""
    others: list[bool] = []
    a, b = (shifted(one, 4) for one in a_and_b())  # copied
    want = np.asarray(kernel(a, b))

    class Finalized:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            others.append(np.array_equal(np.asarray(kernel(2 * a, shifted(b, 8))), 2 * want - b))

    before = gc.get_threshold()
    gc.set_threshold(3)
    try:
        for number in range(500):
            Finalized()
            given: tuple[Any, ...] = (torch.from_numpy(a), b) if number % 2 else (a, b)
            assert np.array_equal(np.asarray(kernel(*given)), want)
            assert np.array_equal(np.asarray(kernel(*given, out=shifted(want, 4))), want)
    finally:
        gc.set_threshold(*before)
    assert others and all(others)


def test_results_may_end_on_other_threads(kernel: Kernel) -> None:
    a, b = a_and_b()
    held: list[Any] = [kernel(torch.from_numpy(a), b) for _ in range(50)] + [kernel(a, b) for _ in range(50)]
    ending = threading.Thread(target=held.clear)
    ending.start()
    for _ in range(200):
        assert np.asarray(kernel(a, b)).shape == SHAPE
    ending.join()
    assert not held


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_process(threads: int, compiler: Compiler) -> None:
    kernel = warmed(built(compiler, threads=threads))
    a, b = a_and_b()
    want = np.asarray(kernel(a, b))
    child = os.fork()
    if not child:
        signal.alarm(20)
        fine = kernel._quick is None and all(np.array_equal(np.asarray(kernel(a, b)), want) for _ in range(5)) and kernel._quick is not None
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_large_arguments_are_copied_elsewhere(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_call, "MOST_COPIED", 50)
    kernel, (a, b) = warmed(built(compiler)), a_and_b()
    quick = kernel._quick
    assert quick is not None
    assert quick((shifted(a, 4), b), None) is None and quick((shifted(a, 0), shifted(b, 4)), None) is not None
    both_ways(kernel, (shifted(a, 4), b))


def test_without_a_library_and_for_other_versions_of_numpy(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, stub in (("_maker", lambda: None), ("_numpy_functions", lambda: 0)):
        with monkeypatch.context() as patch:
            patch.setattr(quick_call, name, stub)
            kernel, (a, b) = built(compiler), a_and_b()
            results = [np.asarray(kernel(a, b)) for _ in range(4)]
            assert kernel._quick is None and all(np.array_equal(one, results[0]) for one in results)


@pytest.mark.parametrize("kind", [CacheError, ToolchainError, MachineTrouble])
def test_what_cannot_be_built_is_warned_of_once(kind: type[AnsorError], compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(compiler: Compiler) -> Path:
        raise kind("no room")

    monkeypatch.setattr(quick_call, "quick_call_library", fails)
    quick_call._maker.cache_clear()
    try:
        (a, b), kernels = a_and_b(), [built(compiler), built(compiler)]
        with pytest.warns(AnsorWarning, match="each call of a kernel takes tens of microseconds longer: no room") as caught:
            for kernel in kernels:
                assert all(np.asarray(kernel(a, b)).shape == SHAPE for _ in range(4))
        assert len(caught) == 1
    finally:
        quick_call._maker.cache_clear()


def test_a_fork_while_a_kernel_is_made() -> None:
    Kernel.__new__(Kernel).after_fork()  # before anything is in it
