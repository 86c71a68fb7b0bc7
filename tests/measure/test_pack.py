"""Kernel packs as files: what is written is read again, and nothing else is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.errors import RecordError
from ansor.measure.failure import Failure
from ansor.measure.pack import LARGEST, Pack, PackedTask, load_pack, make_pack
from ansor.measure.record import Record
from ansor.targets.unit import INSTRUCTIONS

HERE = "cpu -mcpu=native (a processor, zig cc 0.17)"
MACHINE = (("processor", "a processor"), ("cores", "2"))


def record(workload: str, row: tuple[int, ...], cost: float, **changed: Any) -> Record:
    return Record(workload, HERE, (("SP", "C"), ("choices", "0")), row, (cost,))._replace(**changed)


def a_pack() -> Pack:
    records = [record("a", (0,), 2e-3), record("a", (1,), 1e-3), record("a", (2,), 3e-3), record("b", (0,), 1e-6)]
    return make_pack(records, [PackedTask("a", "conv", 2.0), PackedTask("b", "dense")], MACHINE, best=2, of="net")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("pack") / "net.pack"
    a_pack().save(path)
    return path.read_bytes()


def signed(about: dict[str, object], lines: bytes) -> bytes:
    """A pack with the right digest, whatever is in it."""
    head = json.dumps({"pack": about}, separators=(",", ":")).encode() + b"\n"
    digest = hashlib.sha256(head + lines).hexdigest()
    return json.dumps({"pack": {**about, "sha256": digest}}, separators=(",", ":")).encode() + b"\n" + lines


def test_what_is_written_is_read(tmp_path: Path) -> None:
    pack = a_pack()
    pack.save(tmp_path / "net.pack")
    assert load_pack(tmp_path / "net.pack") == pack and pack.target == HERE
    assert [(one.workload, one.row) for one in pack.records] == [("a", (1,)), ("a", (0,)), ("b", (0,))]
    assert repr(pack) == f"Pack(net: 3 programs of 2 tasks for {HERE})"


def test_a_program_is_packed_once_and_failures_are_not() -> None:
    records = [record("a", (0,), 2e-3), record("a", (0,), 1e-3), record("a", (1,), 1.0, costs=(), failure=Failure("compile", "no"))]
    pack = make_pack(records, [PackedTask("a", ""), PackedTask("b", "")], ())
    assert [one.cost for one in pack.records] == [1e-3] and [task.workload for task in pack.tasks] == ["a"]


@pytest.mark.parametrize("changed", [{"target": "cpu (another, zig cc 0.17)"}, {"unit": INSTRUCTIONS, "device": "qemu-aarch64"}])
def test_costs_that_do_not_compare(changed: dict[str, object]) -> None:
    with pytest.raises(RecordError, match="costs are not comparable; pack those of one"):
        make_pack([record("a", (0,), 1.0), record("a", (1,), 2.0, **changed)], [PackedTask("a", "")], ())


def test_nothing_to_pack() -> None:
    with pytest.raises(RecordError, match="no valid program; tune first"):
        make_pack([], [PackedTask("a", "")], ())


@pytest.mark.parametrize(("text", "why"), [
    (b"", "is not a kernel pack"), (b'{"header":{}}\n', "is not a kernel pack"), (b'{"pack":', "first line cannot be read"),
    (b'{"pack":[]}', "first line cannot be read"), (b'{"pack":' + b"[" * 100_000, "first line cannot be read"),
    (b'{"pack":{"format":2}}', "of format 2, and this version of ansor reads format 1"), (b'{"pack":{"format":1}}', "digest does not match"),
])  # fmt: skip
def test_other_files(text: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(text)
    with pytest.raises(RecordError, match=why) as error:
        load_pack(tmp_path / "file")
    assert len(str(error.value).splitlines()) == 1


def test_a_file_that_is_too_large_or_not_there(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.write(b'{"pack":')
        file.truncate(LARGEST + 1)
    with pytest.raises(RecordError, match="more than 32 MiB"):
        load_pack(tmp_path / "large")
    for path in (tmp_path / "none", tmp_path, "\0"):
        with pytest.raises(RecordError, match="cannot be read"):
            load_pack(path)
    with pytest.raises(RecordError, match="cannot be written"):
        a_pack().save(tmp_path / "none" / "net.pack")


@given(place=st.integers(0), byte=st.integers(1, 255), cut=st.booleans())
@settings(max_examples=150, deadline=None)
def test_damage_is_one_sentence(content: bytes, tmp_path_factory: pytest.TempPathFactory, place: int, byte: int, cut: bool) -> None:
    place %= len(content)
    damaged = content[:place] if cut else content[:place] + bytes([content[place] ^ byte]) + content[place + 1 :]
    path = tmp_path_factory.getbasetemp() / "damaged.pack"
    path.write_bytes(damaged)
    with pytest.raises(RecordError) as error:
        load_pack(path)
    assert len(str(error.value).splitlines()) == 1


VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8)  # fmt: skip


@given(field=st.sampled_from(["package", "of", "machine", "tasks", "workload", "name", "uses"]), value=VALUES)
@settings(max_examples=150, deadline=None)
def test_a_first_line_with_other_values(content: bytes, tmp_path_factory: pytest.TempPathFactory, field: str, value: object) -> None:
    """Whoever writes a pack can sign it: what is read is still a pack, or refused."""
    head, _, lines = content.partition(b"\n")
    about = json.loads(head)["pack"]
    del about["sha256"]
    (about if field in about else about["tasks"][0])[field] = value
    path = tmp_path_factory.getbasetemp() / "signed.pack"
    path.write_bytes(signed(about, lines))
    try:
        found = load_pack(path)
    except RecordError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert {task.workload for task in found.tasks} == {"a", "b"} and all(0 < task.uses < float("inf") for task in found.tasks)
        assert all(isinstance(text, str) and text.isprintable() for pair in found.machine for text in pair)


@given(field=st.sampled_from(["workload", "target", "sketch", "row", "seconds", "failure", "elapsed"]), value=VALUES, number=st.integers(0, 2))
@settings(max_examples=150, deadline=None)
def test_a_program_with_other_values(content: bytes, tmp_path_factory: pytest.TempPathFactory, field: str, value: object, number: int) -> None:
    head, *lines = content.splitlines(keepends=True)
    about = json.loads(head)["pack"]
    del about["sha256"]
    lines[number] = json.dumps({**json.loads(lines[number]), field: value}, separators=(",", ":")).encode() + b"\n"
    path = tmp_path_factory.getbasetemp() / "signed.pack"
    path.write_bytes(signed(about, b"".join(lines)))
    try:
        found = load_pack(path)
    except RecordError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert len(found.records) == 3 and all(one.costs and one.target == found.target for one in found.records)


def test_no_more_programs_than_are_read(content: bytes, tmp_path: Path) -> None:
    about = {"format": 1, "package": "1", "of": "", "machine": {}, "tasks": [{"workload": "b", "name": "", "uses": 1}]}
    line = content.splitlines(keepends=True)[-1]
    for count, why in ((64, ""), (65, "at most 64 programs")):
        (tmp_path / "many").write_bytes(signed(about, line * count))
        if why:
            with pytest.raises(RecordError, match=why):
                load_pack(tmp_path / "many")
        else:
            assert len(load_pack(tmp_path / "many").records) == count
