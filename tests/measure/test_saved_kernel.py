"""Saved kernels, whole and damaged in every way: a kernel that computes the same, or one sentence; never a crash."""

from __future__ import annotations

import copy
import json
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import ansor
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import Compiler
from ansor.errors import AnsorError, MeasureError
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.saved_kernel import ABOUT, FILES, POOL, sealed
from tests.power_loss import every_death

MakeSource = Callable[[str], CSource]
X = np.arange(1000, dtype=np.float32)


@pytest.fixture(scope="module")
def kernel(compiler: Compiler) -> Kernel:
    text = "void doubled(void *const *args, unsigned char *w, void *p, void *q) {\n" \
           "  const float *a = args[0], *b = args[1]; float *c = args[2];\n  for (long i = 0; i < 1000; ++i) c[i] = 2 * a[i] + b[0];\n}\n"
    arguments = (Argument("a", (1000,), "float32", "input"), Argument("file", (1,), "float32", "constant"), Argument("c", (1000,), "float32", "output"))
    (built,) = build_kernels([CSource(text, "doubled", arguments, 64, 1)], CToolchain(compiler))
    built.bind_constants({"file": np.full(1, 3.0, np.float32)})
    built.latency_s, built.schedule, built.origin = 1e-6, "for i", "the rules"
    return built


@pytest.fixture
def folder(kernel: Kernel, tmp_path: Path) -> Path:
    return kernel.save(tmp_path / "saved")


def works(found: Kernel) -> bool:
    return np.array_equal(np.asarray(found(X)), 2 * X + 3)


def test_whole(folder: Path, kernel: Kernel) -> None:
    loaded = Kernel.load(folder)
    assert works(loaded) and (loaded.latency_s, loaded.schedule, loaded.origin, loaded.source) == (1e-6, "for i", "the rules", kernel.source)
    assert sorted(path.name for path in folder.iterdir()) == sorted((*FILES, ABOUT))
    assert works(Kernel.load(loaded.save(folder))), "onto itself"


@pytest.mark.parametrize("name", [*FILES, ABOUT])
def test_every_cut_and_every_flip_is_one_sentence(folder: Path, name: str) -> None:
    """In this process: a kernel.so that was cut would end it."""
    rng = random.Random(name)
    whole = (folder / name).read_bytes()
    sizes = [0, 1, len(whole) // 2, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(10))]
    places = [rng.randrange(len(whole)) for _ in range(60)]
    damaged = [whole[:size] for size in sizes] + [whole[:k] + bytes([whole[k] ^ (1 << rng.randrange(8))]) + whole[k + 1 :] for k in places]
    damaged += [whole + b"\0", b"\0" * len(whole), whole[:k] + b"\0" * (len(whole) - k) if (k := len(whole) // 3) else b""]
    for content in damaged:
        (folder / name).write_bytes(content)
        try:
            assert works(Kernel.load(folder))
        except MeasureError as error:
            assert "\n" not in str(error) and str(folder) in str(error)
        else:
            # White space of JSON may change; nothing else may.
            assert name == ABOUT and json.loads(content) == json.loads(whole)


@pytest.mark.parametrize("name", [*FILES, ABOUT])
def test_a_file_that_is_missing_or_a_folder(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(MeasureError, match="no saved kernel can be read there"):
        Kernel.load(folder)
    (folder / name).mkdir()
    with pytest.raises(MeasureError, match="no saved kernel can be read there"):
        Kernel.load(folder)


VALUES: list[object] = [None, True, -1, 0, 10**30, 1.5, float("nan"), "", "text", "../../x\0", [], [[]], {}, [1], {"a": 1}, [None], "\ud800"]


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a value of JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _places(item, (*path, key))


@pytest.mark.parametrize("again", [False, True], ids=["as it was", "sealed again"])
def test_every_field_of_every_other_kind(folder: Path, again: bool) -> None:
    """Also by somebody who makes the digest right: no raw error, and nothing is started."""
    whole = json.loads((folder / ABOUT).read_text())
    for path in list(_places(whole)):
        for value in VALUES:
            about = json.loads(json.dumps(whole))
            place: Any = about
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            (folder / ABOUT).write_text(json.dumps(sealed(about) if again else about))
            try:
                loaded = Kernel.load(folder)
            except AnsorError:
                continue
            assert again and path[0] in ("latency_s", "schedule", "origin", "workspace_bytes", "threads", "constants", "arguments") or works(loaded), path


OTHER = ["", "null", "[]", "3", '"x"', "[" * 100_000, '{"version": ' + "[" * 100_000, "{" * 9, "\xff", '{"version": 2}', '{"version": 1e999}']


@pytest.mark.parametrize("text", OTHER)
def test_other_json(folder: Path, text: str) -> None:
    (folder / ABOUT).write_bytes(text.encode("latin-1"))
    with pytest.raises(MeasureError, match=r"saved kernel|version|damaged"):
        Kernel.load(folder)


def test_kernels_saved_before_there_were_digests(folder: Path) -> None:
    (folder / ABOUT).write_text(json.dumps({"version": 1, "entry": "doubled"}))
    with pytest.raises(MeasureError, match="a kernel in format version 1, but this package reads 2; save it again"):
        Kernel.load(folder)


def test_files_of_two_kernels(folder: Path, kernel: Kernel, tmp_path: Path) -> None:
    kernel_two = copy.copy(kernel)
    kernel_two.bind_constants({"file": np.full(1, 4.0, np.float32)})
    other = kernel_two.save(tmp_path / "other")
    shutil.copy(other / "constants.npz", folder)
    with pytest.raises(MeasureError, match="constants.npz is damaged, or was only partly saved; save the kernel again"):
        Kernel.load(folder)


def test_power_lost_while_a_kernel_is_saved(kernel: Kernel, tmp_path: Path) -> None:
    """The folder has a whole kernel, or says that it has none; saving again repairs it."""
    older = copy.deepcopy(kernel)
    older.schedule = "older"
    place, outcomes = tmp_path / "saved", set()

    def begin() -> None:
        shutil.rmtree(place, ignore_errors=True)
        older.save(place)

    for how in every_death(tmp_path, lambda: kernel.save(place), begin):
        try:
            loaded = Kernel.load(place)
            outcomes.add(loaded.schedule)
            assert works(loaded), how
        except MeasureError:
            outcomes.add("refused")
            assert Kernel.load(kernel.save(place)).schedule == "for i", how
    assert {"older", "for i"} <= outcomes


def test_saving_over_a_file_and_below_one(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(MeasureError, match="asked to save a kernel in .*which cannot be written to .*; name another folder"):
            kernel.save(place)
    (tmp_path / "folder" / "kernel.so").mkdir(parents=True)
    with pytest.raises(MeasureError, match="cannot be written to"):
        kernel.save(tmp_path / "folder")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda kernel: pickle.loads(pickle.dumps(kernel))], ids=["copy", "deepcopy", "pickle"])
def test_kernels_are_copied_and_pickled(kernel: Kernel, copied: Callable[[Kernel], Kernel]) -> None:
    made = copied(kernel)
    assert works(made) and made is not kernel and (made.latency_s, made.schedule, made.origin) == (1e-6, "for i", "the rules")
    made.bind_constants({"file": np.full(1, 5.0, np.float32)})
    assert works(kernel), "the copy's constants are its own"


def test_a_pickled_kernel_runs_in_another_process(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "kernel.pickle").write_bytes(pickle.dumps([kernel, kernel]))
    program = "import pickle, sys, numpy as np; a, b = pickle.load(open(sys.argv[1], 'rb')); assert a is b; print(float(a(np.ones(1000, np.float32)).sum()))"
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "kernel.pickle")], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "5000.0\n", ended.stderr


def test_a_pickle_that_was_changed_is_one_sentence(kernel: Kernel) -> None:
    text = pickle.dumps(kernel)
    place = text.index(b"\x7fELF") + 600
    with pytest.raises(MeasureError, match="kernel.so is damaged"):
        pickle.loads(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])


def test_threads_are_saved_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that uses several threads runs, and can be saved again, on a machine without a compiler."""
    from ansor.codegen import pool_library
    from ansor.errors import ToolchainError

    def no_compiler(command: str = "") -> NoReturn:
        raise ToolchainError("no C compiler")

    place, a = tmp_path / "threaded", np.ones((128, 128), np.float32)
    kernel = ansor.auto_schedule("matmul", (128, 128, 128), "cpu -threads=2")
    assert isinstance(kernel, Kernel) and kernel.code.threads == 2
    kernel.save(place)
    assert (place / POOL).is_file()
    for name, value in (("find_compiler", no_compiler), ("_pools", {}), ("_apart", set()), ("_bundled", None)):
        monkeypatch.setattr(pool_library, name, value)
    again = Kernel.load(place)
    twice = Kernel.load(again.save(tmp_path / "again"))
    assert all(np.array_equal(np.asarray(one(a, a)), np.full((128, 128), 128.0)) for one in (again, twice))
    for content in (b"", (place / POOL).read_bytes()[:-1], None):
        (place / POOL).unlink()
        if content is not None:
            (place / POOL).write_bytes(content)
        with pytest.raises(MeasureError, match="pool.so is damaged, or was only partly saved"):
            Kernel.load(place)
        (place / POOL).touch()


def test_threads_of_another_kernel_are_left_alone(folder: Path) -> None:
    (folder / POOL).write_bytes(b"whatever was there")
    assert works(Kernel.load(folder))
