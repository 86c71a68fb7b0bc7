"""A pick in another process is the one of the first, without a search; whatever it follows from makes it another one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansor import te
from ansor.algorithms import base
from ansor.algorithms.base import Alternative
from ansor.ir.dag import Dag
from ansor.rules.registry import resolve
from ansor.run import kept_picks, zero_tuning
from ansor.run.scoring_model import scoring_model
from ansor.run.zero_tuning import pick
from ansor.support import safe_files, settings
from ansor.targets.boards.catalogue import FOLDER
from ansor.tasks.task import SearchTask
from ansor.te import workloads


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path))
    monkeypatch.setattr(kept_picks, "ENABLED", True)
    return tmp_path / kept_picks.FOLDER


def task(size: int = 32, target: str = "cpu -threads=1") -> SearchTask:
    return SearchTask(workloads.matmul, (size, 16, 16), target)


def no_search(*words: object) -> object:
    raise AssertionError("a kept pick needs no search")


def test_the_second_pick_is_the_first_and_is_not_searched_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pick(task())
    monkeypatch.setattr(zero_tuning, "_picked", no_search)
    again, fresh = pick(task()), task()
    assert (again.program.row, again.how, again.confidence, again.program.origin) == (first.program.row, first.how, first.confidence, first.program.origin)
    assert pick(fresh).program.sketch.name == first.program.sketch.name
    assert "spaces" not in fresh.__dict__, "a kept pick needs no sketches"
    assert pick(fresh).program.sketch.name in [space.name for space in fresh.spaces]
    for other in (task(48), task(target="cpu -threads=2"), task(target="cpu -mcpu=znver3 -threads=1")):
        with pytest.raises(AssertionError, match="needs no search"):
            pick(other)
    for words in ({"seed": 1}, {"among": fresh.spaces[:1]}):
        with pytest.raises(AssertionError, match="needs no search"):
            pick(fresh, **words)


def test_an_edited_board_has_other_picks(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "board.toml"
    text = (FOLDER / "qemu-riscv32.toml").read_text()
    names = set()
    for memory in ("0x0400_0000", "0x0200_0000"):
        assert "0x0400_0000" in text
        file.write_text(text.replace("0x0400_0000", memory))
        names.add(kept_picks._name(task(target=f"micro -board={file}"), "estimate", 0))
    assert len(names) == 2


def test_another_process_finds_it(cache: Path) -> None:
    first = pick(task())
    text = (
        "from ansor.run import zero_tuning; zero_tuning._picked = None\n"
        "from ansor.tasks.task import SearchTask; from ansor.te import workloads\n"
        "print(zero_tuning.pick(SearchTask(workloads.matmul, (32, 16, 16), 'cpu -threads=1')).program.row)"
    )
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == repr(first.program.row)


@pytest.mark.parametrize("damage", ["cut", "other digest", "foreign row"])
def test_what_is_damaged_is_searched_for_again(damage: str, cache: Path) -> None:
    first = pick(task())
    (content,) = cache.glob("*.json")
    if damage == "foreign row":
        (note,) = (path for path in cache.iterdir() if path.suffix != ".json")
        changed = content.read_bytes().replace(b'"row": [', b'"row": [99999, ')
        content.unlink()
        safe_files.keep(note, ".json", changed)
    else:
        content.write_bytes(content.read_bytes()[:-9] if damage == "cut" else content.read_bytes() + b" ")
    assert pick(task()).program.row == first.program.row


def test_a_model_of_this_machine_picks_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is fitted, or removed, between two picks."""
    first = pick(task())
    with monkeypatch.context() as patch:
        patch.setattr(zero_tuning, "scoring_model", lambda *words: replace(scoring_model(*words), name="another model", mark="machine 12345678"))
        assert pick(task()).how == "chosen by another model"
    monkeypatch.setattr(zero_tuning, "_picked", no_search)
    assert pick(task()).how == first.how


def elsewhere(dag: Dag) -> Iterator[Alternative]:
    """An algorithm of somebody else."""
    yield Alternative("elsewhere", Dag(dag.tensors))


def test_sketches_count_where_they_do_not_follow_from_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules, algorithms and targets of others may make other sketches tomorrow, without a change of our files."""
    one = task()
    kept_picks._name(one, "mark", 0)
    assert "spaces" not in one.__dict__
    wide = replace(one.target, hardware=replace(one.target.hardware, vector_registers=7))
    for other in (
        SearchTask(workloads.matmul, (32, 16, 16), one.target, rules=one.rules[:-1]),
        SearchTask(workloads.matmul, (32, 16, 16), one.target, algorithms=[elsewhere]),
        SearchTask(workloads.matmul, (32, 16, 16), replace(one.target, prior=replace(one.target.prior, family="other"))),
        SearchTask(workloads.matmul, (32, 16, 16), wide),
    ):
        kept_picks._name(other, "mark", 0)
        assert "spaces" in other.__dict__, other
    with monkeypatch.context() as patch:
        patch.setattr(type(resolve(one.rules)[-1]), "__module__", "elsewhere.rules")
        other = task()
        kept_picks._name(other, "mark", 0)
        assert "spaces" in other.__dict__
    monkeypatch.setitem(base._algorithms, "elsewhere", elsewhere)
    registered = task()
    name = kept_picks._name(registered, "mark", 0)
    assert registered.spaces[-1].algorithm == "elsewhere"
    monkeypatch.setitem(registered.spaces[-1].sketch.dag.__dict__, "key", "of what it computes now")
    assert kept_picks._name(registered, "mark", 0) != name


def test_what_a_pick_follows_from_is_in_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {kept_picks._name(task(), "mark", 0), kept_picks._name(task(), "other mark", 0), kept_picks._name(task(), "mark", 1)}
    a, b, k = te.placeholder((32, 16), name="a"), te.placeholder((16, 16), name="b"), te.reduce_axis(16, "other")
    renamed = SearchTask(tensors=[a, b, te.compute((32, 16), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="c")], target="cpu -threads=1")
    assert renamed.workload_key == task().workload_key
    names.add(kept_picks._name(renamed, "mark", 0))
    for part in ("package_state", "identity"):
        with monkeypatch.context() as patch:
            patch.setattr(kept_picks, part, lambda *words: "another" if not words else {"processor": "another"})
            names.add(kept_picks._name(task(), "mark", 0))
    assert len(names) == 6


def test_what_a_read_only_cache_lacks_is_kept_among_the_temporary_files(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pick(task(48))
    (tmp_path / "other").mkdir(mode=0o700)
    for module in (kept_picks, settings):
        monkeypatch.setattr(module, "cache_part", lambda name: safe_files.private_folder(tmp_path / "other" / name))
    monkeypatch.setattr(settings, "writable_cache", lambda: tmp_path / "other")
    pick(task())
    assert len(list((tmp_path / "other" / kept_picks.FOLDER).iterdir())) == 2
    monkeypatch.setattr(zero_tuning, "_picked", no_search)
    assert pick(task()).program.row and pick(task(48)).program.row


def test_of_many_the_oldest_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_picks, "MOST", 4)
    for size in (16, 32, 48):
        pick(task(size))
    assert len(list(cache.iterdir())) == 5
    monkeypatch.setattr(zero_tuning, "_picked", no_search)
    assert pick(task(48)).program.row


def test_a_cache_that_cannot_be_written_to_keeps_nothing(cache: Path) -> None:
    cache.write_text("a file where the folder would be")
    assert pick(task()).program.row
    assert cache.is_file()
