"""Programs in parts: the same instructions as in one file, compiled once for all candidates that have them, and failures that say what is wrong."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.codegen.image import objects
from ansor.codegen.image.elf import read_image
from ansor.codegen.image.kept_objects import KeptObjects
from ansor.codegen.image.objects import STAND_IN, units_of
from ansor.codegen.image.toolchain import IMAGE, ImageToolchain
from ansor.codegen.source import CSource
from ansor.codegen.text_parts import Parts
from ansor.codegen.toolchain import Compiled
from ansor.measure.builder import Builder
from ansor.measure.measurer import Candidate, Measurer
from ansor.schedule.sketch import Sketch
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask

SIZES = (1, 16, 16, 8, 16, 3, 1, 1)


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_kept", KeptObjects(1 << 20))


def task_of(board: str) -> SearchTask:
    return SearchTask("conv2d", SIZES, parse_target(f"micro -board={board}"))


def programs(task: SearchTask, count: int, seed: int = 0) -> list[CSource]:
    """Of several sketches, each with more than one nest."""
    found, source = list[CSource](), np.random.default_rng(seed)
    for space in itertools.cycle(task.spaces):
        rows = source.integers(0, np.asarray(space.sizes, dtype=np.int64), (20, len(space.sizes)))
        for row in rows[space.legal(rows)][:1].tolist():
            found.append(task.source(space.sketch, row))
        if len(found) == count:
            return found
    raise AssertionError("not reached")


def toolchain_of(task: SearchTask) -> ImageToolchain:
    made = task.target.toolchain()
    assert isinstance(made, ImageToolchain)
    made.prepare(IMAGE)
    return made


def parts_of(source: CSource) -> Parts:
    assert source.apart is not None and source.apart.nests
    return source.apart


def counted(task: SearchTask, sources: Sequence[CSource]) -> list[float | None]:
    with Measurer(task.target, None) as measurer, closing(measurer.measure([Candidate(task.measure_task, one, None) for one in sources])) as results:
        found = list(results)
    assert not [one.failure for one in found if one.failure is not None]
    return [one.cost for one in found]


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "netduinoplus2", "qemu-riscv32", "spike-rv64"])
def test_parts_take_as_many_instructions_as_the_whole_text(board: str) -> None:
    """The text is what people get, the parts are what is counted."""
    task = task_of(board)
    sources = programs(task, 4)
    assert all(parts_of(one) for one in sources)
    assert counted(task, sources) == counted(task, [replace(one, parts=None) for one in sources])


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("board", ["mps2-an386", "qemu-riscv32"])
def test_functions_that_nests_share_do_not_change_that(board: str) -> None:
    """A compiler decides by the number of calls in a file whether to inline a function, and for which arguments."""
    x = te.placeholder((24,), name="x")
    y = te.compute((24,), lambda i: te.power(x[i], 2.5) + te.sigmoid(x[i]), name="y")
    z = te.compute((24,), lambda i: te.power(y[23 - i], 1.5) + te.sigmoid(y[i]) + te.tanh(y[i]), name="z")
    task = SearchTask(tensors=[x, z], target=f"micro -board={board}", name="shared")
    source = task.source(Sketch(task.dag), ())
    assert source.text.count("static ANSOR_APART") > len(parts_of(source).nests) == 2
    whole, apart = (counted(task, [one])[0] for one in (replace(source, parts=None), source))
    assert whole == apart


@pytest.mark.compiler
@pytest.mark.parametrize("board", ["mps2-an386", "spike-rv32", "netduinoplus2"])
def test_a_nest_is_compiled_once_for_all_candidates(board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(board)
    toolchain, sources = toolchain_of(task), programs(task, 3)
    seen: list[int] = []
    compiled = ImageToolchain._compiled

    def noting(self: ImageToolchain, files: Sequence[Path], limits: object) -> Compiled:
        seen.append(len(files))
        return compiled(self, files, limits)  # type: ignore[arg-type]

    monkeypatch.setattr(ImageToolchain, "_compiled", noting)
    first = toolchain.build(sources, IMAGE, tmp_path / "first", timeout=120)
    again = toolchain.build([*sources, sources[0]], IMAGE, tmp_path / "again", timeout=120)
    assert first.said.ok and again.said.ok, first.said.text + again.said.text
    nests = {one.text(STAND_IN) for source in sources for one in parts_of(source).nests}
    assert seen == [1 + len(nests), 1], "all entry points are one file"
    assert [one.digest for one in (*first.artifacts, first.artifacts[0])] == [one.digest for one in again.artifacts] and first.artifacts[0].digest
    for one, other in zip(first.artifacts, again.artifacts, strict=False):
        if not toolchain.board.code.flash:
            assert read_image(one.path).segments == read_image(other.path).segments


@pytest.mark.compiler
@pytest.mark.usefixtures("boards")
@pytest.mark.parametrize("board", ["mps2-an386", "spike-rv32", "spike-rv64", "netduinoplus2"])
def test_entry_points_that_share_an_object_are_those_of_candidates_built_alone(board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of(board)
    said: list[str] = []
    compiled = ImageToolchain._compiled

    def noting(self: ImageToolchain, files: Sequence[Path], limits: object) -> Compiled:
        found = compiled(self, files, limits)  # type: ignore[arg-type]
        said.append(found.text)
        return found

    monkeypatch.setattr(ImageToolchain, "_compiled", noting)
    toolchain, (first, whole, last) = toolchain_of(task), programs(task, 3)
    sources = (first, replace(whole, parts=None), last)
    made = toolchain.build(sources, IMAGE, tmp_path / "group", timeout=120)
    assert made.said.ok, made.said.text
    assert said == [""], "names of one candidate are no longer defined in the next"
    alone = [toolchain.build([one], IMAGE, tmp_path / f"alone{number}", timeout=120).artifacts[0] for number, one in enumerate(sources)]
    assert [one.digest for one in made.artifacts] == [one.digest for one in alone] and len({one.digest for one in alone}) == 3
    costs = counted(task, [*sources])
    assert costs == [counted(task, [one])[0] for one in sources]


@pytest.mark.compiler
def test_digests_tell_nests_and_their_order_apart(tmp_path: Path) -> None:
    task = task_of("mps2-an386")
    toolchain, (source, other) = toolchain_of(task), programs(task, 2)
    parts = parts_of(source)
    changed = replace(parts.nests[-1], before=parts.nests[-1].before.replace("acc0_0 + (", "acc0_0 - ("))
    assert changed != parts.nests[-1]
    texts = (parts, replace(parts, nests=(*parts.nests[:-1], changed)), replace(parts, entry=f"{parts.entry}\n/* nothing else */\n"))
    made = toolchain.build([*(replace(source, parts=one) for one in texts), other], IMAGE, tmp_path / "one", timeout=120)
    assert made.said.ok, made.said.text
    first, minus, same, another = (one.digest for one in made.artifacts)
    assert first == same and len({first, minus, another}) == 3


@pytest.mark.compiler
@pytest.mark.parametrize("where", ["nest", "entry"])
def test_the_candidate_with_what_is_wrong_fails_alone_and_says_it(where: str) -> None:
    task = task_of("qemu-riscv32")
    good, bad = programs(task, 2)
    parts = parts_of(bad)
    if where == "nest":
        parts = replace(parts, nests=(replace(parts.nests[0], body="{ nowhere(); int }"), *parts.nests[1:]))
    else:
        parts = replace(parts, entry=f"{parts.entry}\nint wrong(void) {{ nowhere(); int }}\n")
    with Builder(task.target.toolchain(), IMAGE, jobs=1, timeout=120) as builder:
        built = builder.build([good, replace(bad, parts=parts)])
    assert built[0].failure is None and built[0].artifact is not None
    assert built[1].failure is not None and built[1].failure.kind == "compile" and "nowhere" in built[1].failure.text


@pytest.mark.compiler
def test_the_stack_of_a_program_is_that_of_its_deepest_nest_and_of_its_entry(tmp_path: Path) -> None:
    task = task_of("mps2-an386")
    toolchain, (source,) = toolchain_of(task), programs(task, 1)
    parts, stack = parts_of(source), toolchain.board.run.stack

    def with_frames(nest: int, entry: int) -> CSource:
        body, own = (f'{{ char local[{size}]; __asm__ volatile("" : : "r"(local) : "memory");' for size in (nest, entry))
        head = f"void {source.entry}(void *const *args, unsigned char *workspace) {{"
        assert head in parts.entry
        nests = (replace(parts.nests[0], body=body + parts.nests[0].body[1:]), *parts.nests[1:])
        changed = replace(parts, nests=nests, entry=parts.entry.replace(head, head[:-1] + own))
        return replace(source, parts=changed)

    said = [toolchain.build([with_frames(*sizes)], IMAGE, tmp_path / f"stack{number}", timeout=120).said
            for number, sizes in enumerate([(stack // 4, stack // 4), (stack * 2 // 3, stack * 2 // 3), (2 * stack, 8)])]  # fmt: skip
    assert [one.kind for one in said] == ["", "does_not_fit", "does_not_fit"]
    assert re.search(r"needs [\d,]+ bytes of it at once", said[1].text)


@pytest.mark.compiler
def test_what_is_cancelled_is_not_kept(tmp_path: Path) -> None:
    task = task_of("mps2-an386")
    toolchain, sources, cancelled = toolchain_of(task), programs(task, 2), threading.Event()
    cancelled.set()
    made = toolchain.build(sources, IMAGE, tmp_path / "one", timeout=120, cancelled=cancelled)
    assert made.said.kind == "compile_timeout" and not objects._kept._objects
    assert toolchain.build(sources, IMAGE, tmp_path / "again", timeout=120).said.ok


def test_text_without_parts_is_one_unit() -> None:
    units = units_of(CSource("static int helper;\nvoid run(void *const *args, unsigned char *workspace) {}\n", "run", ()), "ansor_candidate_7")
    assert units.nests == () and "#define run ansor_candidate_7" in units.entry and "#define helper ansor_candidate_7_helper" in units.entry


def test_names_of_nests_are_as_long_as_the_one_that_they_replace() -> None:
    (source,) = programs(task_of("mps2-an386"), 1)
    for number in (0, 12, 345):
        units = units_of(source, f"ansor_candidate_{number}")
        assert units.nests and {len(one) for one in units.names} == {len(STAND_IN)}
        assert all(STAND_IN in text for text in units.nests) and all(name in units.entry for name in units.names)
    assert units_of(source, "ansor_candidate_1234567").nests == (), "names of another length: in one unit"
