"""Our own mathematical functions against the C library in double precision, one element at a time and in vectors, under every compiler that is here."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.codegen.dialect import PRELUDE, Helpers
from ansor.codegen.toolchain import Compiler, compile_shared, find_compiler
from ansor.codegen.vector_math import FUNCTIONS, HUGE_ANGLE

pytestmark = pytest.mark.compiler
LANES = (1, 2, 4, 8, 16)
REFERENCE = {"sigmoid": "1 / (1 + exp(-v))", "rsqrt": "1 / sqrt(v)"}
COMPILERS = ["zig", *(["gcc"] if shutil.which("gcc") else [])]
BOUNDS = {**{name: function.ulp for name, function in FUNCTIONS.items()}, "rsqrt": 1.5, "sqrt": 0.5, "floor": 0.0, "ceil": 0.0, "trunc": 0.0, "round": 0.0}
ROUNDED = {"round": "rint"}
Floats = NDArray[np.float32]


def text(names: tuple[str, ...]) -> str:
    helpers = Helpers()
    lines = []
    for name in names:
        for lanes in LANES:
            called = helpers.call(name, "float32", lanes)
            kind = "float" if lanes == 1 else helpers.vector("float32", lanes)
            lines.append(f"void {name}_by{lanes}(float *restrict y, const float *restrict x, long n) "
                         f"{{ for (long i = 0; i < n; i += {lanes}) *({kind} *)&y[i] = {called}(*(const {kind} *)&x[i]); }}")  # fmt: skip
        value = REFERENCE.get(name, f"{ROUNDED.get(name, name)}(v)")
        lines.append(f"void {name}_exact(double *y, const float *x, long n) {{ for (long i = 0; i < n; ++i) {{ double v = x[i]; y[i] = {value}; }} }}")
    return "\n".join([PRELUDE, helpers.text(), *lines, ""])


@pytest.fixture(scope="module", params=COMPILERS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    place = tmp_path_factory.mktemp("vector_math") / "functions.so"
    compiled = compile_shared(find_compiler(request.param), [text(tuple(BOUNDS))], place, timeout=300)
    assert compiled.ok, compiled.text
    return ctypes.CDLL(str(place))


@lru_cache
def samples() -> Floats:
    """Every 8192nd float32, what lies around the corners of the functions, and the plain range between -20 and 20."""
    patterns = (np.arange(0, 2**32, 8192, dtype=np.uint64) + np.arange(2**19) % 8191).astype(np.uint32).view(np.float32)
    corners = np.array([0.0, 1e-45, 1.1754944e-38, 0.0622, 0.2034, 0.35, 0.7071, 1.0, 1.15, 1.4142, 3.919, 4.0, 7.69144, 9.5, 16.6456, 20.0, 88.72284, 89.0,
                        103.97, 104.0, HUGE_ANGLE, 3.4028235e38, np.inf, np.nan], np.float32)  # fmt: skip
    steps = np.arange(-200, 200, dtype=np.int32)
    around = (corners.view(np.int32)[:, None] + steps).reshape(-1).view(np.float32)
    plain = np.random.default_rng(0).uniform(-20, 20, 2**19).astype(np.float32)
    found = np.concatenate([patterns, around, -around, plain])
    return found[: found.size // 16 * 16]


def computed(library: ctypes.CDLL, function: str, dtype: str) -> NDArray[np.floating]:
    x = samples()
    y = np.empty(x.shape, dtype)
    library[function](y.ctypes.data_as(ctypes.c_void_p), x.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(x.size))
    return y


def ulps(found: Floats, exact: NDArray[np.floating]) -> NDArray[np.float64]:
    """Distance in units in the last place of the exact value; infinite where an infinity, a NaN or a sign is wrong."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.abs(exact))[1] - 24, -149))
        distance = np.abs(found.astype(np.float64) - exact) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    distance = np.where(np.isfinite(rounded) & np.isfinite(found), distance, np.where(same, 0.0, np.inf))
    return np.where((np.signbit(found) == np.signbit(rounded)) | np.isnan(rounded), distance, np.inf)


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_accuracy(name: str, library: ctypes.CDLL) -> None:
    error = ulps(computed(library, f"{name}_by16", "float32"), computed(library, f"{name}_exact", "float64"))
    worst = int(error.argmax())
    assert error[worst] <= BOUNDS[name], f"{name}({samples()[worst]!r}) is off by {error[worst]} ulp"


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_every_number_of_lanes_gives_the_same(name: str, library: ctypes.CDLL) -> None:
    one = computed(library, f"{name}_by1", "float32")
    for lanes in LANES[1:]:
        many = computed(library, f"{name}_by{lanes}", "float32")
        differ = (one.view(np.uint32) != many.view(np.uint32)) & ~(np.isnan(one) & np.isnan(many))
        assert not differ.any(), f"{name}({samples()[differ][0]!r}) differs in vectors of {lanes}"


@pytest.mark.parametrize(("name", "low", "high", "full"), [("erf", -1.0, 1.0, 4.0), ("tanh", -1.0, 1.0, 9.1), ("sigmoid", 0.0, 1.0, 17.4)])
def test_bounds_are_reached_and_not_passed(name: str, low: float, high: float, full: float, library: ctypes.CDLL) -> None:
    x, y = samples(), computed(library, f"{name}_by16", "float32")
    assert np.nanmin(y) == low and np.nanmax(y) == high
    assert (y[x >= full] == high).all()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for instructions of x86")
@pytest.mark.parametrize("command", COMPILERS)
@pytest.mark.parametrize(("name", "instruction"), [("sqrt", "vsqrtps"), ("rsqrt", "vdivps"), ("floor", "vroundps"), ("ceil", "vroundps"), ("round", "vroundps"),
                                                   ("trunc", "vroundps"), ("fabs", "vandps"), ("exp", "vmulps"), ("erf", "vmulps")])  # fmt: skip
def test_vectors_are_vector_instructions(command: str, name: str, instruction: str, tmp_path: Path) -> None:
    assert instruction in assembly(find_compiler(command), name, tmp_path / "text.s")


def assembly(compiler: Compiler, name: str, place: Path) -> str:
    """Of one vector of 8; without a call of another function."""
    helpers = Helpers()
    called, kind = helpers.call(name, "float32", 8), helpers.vector("float32", 8)
    entry = f"void entry({kind} *x) {{ *x = {called}(*x); }}"
    compiled = compile_shared(compiler, ["\n".join([PRELUDE, helpers.text(), entry, ""])], place, mcpu="x86-64-v3", flags=("-S",), timeout=300)
    assert compiled.ok, compiled.text
    found = place.read_text()
    assert not re.search(r"^\s*call", found, re.MULTILINE), found
    return found


def test_the_test_tells_a_wrong_value() -> None:
    exact = np.array([1.0, 1.0, np.inf, np.nan, 0.0, 1e-45])
    found = np.array([1.0, 1.0 + 2**-22, 3e38, 0.0, -0.0, 3e-45], np.float32)
    assert ulps(found, exact).tolist() == pytest.approx([0.0, 2.0, np.inf, np.inf, np.inf, 2.0], rel=0.5)
