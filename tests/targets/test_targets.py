from __future__ import annotations

import platform
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.commands.targets import run_targets
from ansor.errors import TargetError
from ansor.ir.columns import Row
from ansor.ir.dag import Dag
from ansor.ir.loops import Loops
from ansor.schedule.legality import legal
from ansor.schedule.machine import Limit
from ansor.schedule.sketch import Sketch
from ansor.targets import cpu
from ansor.targets.base import Bounds, Kind, Option, Target, find_kind, kind_names, parse_target, register_kind
from ansor.targets.cpu import PROCESSORS, caches_of, features_of, vectors_of
from ansor.tasks.task import SearchTask
from ansor.te import workloads


def test_the_plain_cpu_is_this_machine() -> None:
    target = parse_target("cpu")
    assert target.kind == "cpu" and target.mcpu == "native"
    assert target.threads >= 1 and target.vector_bytes in (16, 32, 64) and target.caches.l1_bytes >= 1024
    assert str(target) == f"cpu -mcpu=native -threads={target.threads}"


def test_options_change_what_they_name() -> None:
    target = parse_target("cpu -mcpu=znver3 -threads=1 -l2=1M -num-registers=24")
    assert (target.mcpu, target.threads, target.vector_bytes, target.vector_registers, target.caches.l2_bytes) == ("znver3", 1, 32, 24, 1 << 20)
    assert str(target) == "cpu -mcpu=znver3 -threads=1 -num-registers=24 -l2=1M"


@pytest.mark.parametrize(
    "text",
    [
        "cpu",
        "llvm",
        "cpu -mcpu=skylake-avx512 -threads=3",
        "cpu -mcpu=x86-64 -l3=0 -cache-line=128",
        "cpu -cc='gcc -m64'",
        "cpu -vector-bytes=16 -stack=64K -l1=1025",
        "cpu -mcpu=haswell -mattr=+avxvnni,-sse2",
    ],
)
def test_canonical_text_reads_back(text: str) -> None:
    target = parse_target(text)
    assert parse_target(str(target)) == target
    assert str(parse_target(str(target))) == str(target)


def test_a_target_is_its_own_reading() -> None:
    target = parse_target("cpu -threads=1")
    assert parse_target(target) is target


def test_llvm_means_cpu_and_a_blank_is_an_equals_sign() -> None:
    assert parse_target("llvm -mcpu haswell -threads 2") == parse_target("cpu -mcpu=haswell -threads=2")


def test_every_listed_processor_parses() -> None:
    for name in PROCESSORS:
        assert parse_target(f"cpu -mcpu={name}").mcpu == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty text; name a kind: arm, armv7, cpu"),
        ("toaster", "asked for target kind 'toaster'; the kinds are arm, armv7, cpu"),
        ("amr -threads=1", "asked for target kind 'amr' (did you mean arm?); the kinds are"),
        ("cpu -mcpu=skylke", "-mcpu=skylke (did you mean skylake?); the processors are native"),
        ("cpu -speed=9", "'-speed=9', which is not one of its options; the options are -mcpu (processor"),
        ("cpu -thread=9", "(did you mean -threads?); the options are"),
        ("cpu fast", "'fast', which is not one of its options"),
        ("cpu -mcpu=z80", "-mcpu=z80; the processors are native, x86-64"),
        ("cpu -threads=0", "-threads=0; -threads (threads that run a kernel) is an integer, at least 1"),
        ("cpu -threads=two", "is an integer"),
        ("cpu -threads", "-threads and no value; write -threads=VALUE"),
        ("cpu -threads=1 -threads=2", "-threads twice"),
        ("cpu -l1=32X", "is bytes such as 32K or 1M, at least 1024"),
        ("cpu -l1=10G", "is bytes such as 32K or 1M, at least 1024 and at most 64M"),
        ("cpu -vector-bytes=7", "is a power of two, at least 4"),
        ("cpu -cache-line=48", "is a power of two, at least 8"),
        ("cpu -cc='gcc", "close the quotation"),
        ("cpu -mattr=avx2", "-mattr=avx2; -mattr (instructions that it has or lacks) is +NAME or -NAME"),
        ("cpu -mattr=+sse9", "of amx-bf16, amx-int8, avx2, avx512bf16, avx512bw"),
    ],
)
def test_mistakes_say_what_there_is(text: str, words: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(text)
    assert words in str(caught.value)


def test_an_option_with_one_value_names_it() -> None:
    option = Option("threads", "hardware.threads", "count", "threads that run a kernel", Bounds(1, 1))
    with pytest.raises(TargetError, match=r"asked for target chip with -threads=2; -threads \(threads that run a kernel\) has to be 1$"):
        option.parse("chip", "2")


def test_two_kinds_of_one_name_collide() -> None:
    register_kind(find_kind("cpu"))  # the same one again is no collision
    for name in ("cpu", "llvm"):
        with pytest.raises(TargetError, match="exists already"):
            register_kind(Kind(name, parse_target, ()))


def test_what_is_no_kind_or_has_a_name_that_no_text_begins_with_is_told() -> None:
    with pytest.raises(TargetError, match="asked to register 'x', which is a str; give a Kind"):
        register_kind("x")  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="asked to register target kind 'my board'; give it a name of letters"):
        register_kind(Kind("my board", parse_target, ()))


def test_a_kind_whose_targets_are_of_another_kind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import ansor.targets.base as base

    monkeypatch.setattr(base, "_kinds", dict(base._kinds))
    register_kind(Kind("variant", find_kind("cpu").default, ()))
    with pytest.raises(TargetError, match=r"the default\(\) of target 'variant' returns a target of kind 'cpu'; return Target\(kind='variant'"):
        parse_target("variant")


def test_kinds_of_packages_that_cannot_be_loaded_are_told_and_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Point:
        def __init__(self, name: str, found: object) -> None:
            self.name, self.value, self.found = name, "my_boards:MINE", found

        def load(self) -> object:
            if self.found is None:
                raise AttributeError("no MINE")
            return self.found

    import ansor.targets.base as base

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point("gone", None), Point("other", find_kind("cpu"))] if group == base.GROUP else [])
    with pytest.raises(TargetError, match="asked for target kind 'gone', which a package offers as my_boards:MINE: it cannot be loaded .AttributeError"):
        find_kind("gone")
    with pytest.raises(TargetError, match="my_boards:MINE: 'cpu' is there; name a Kind with that name"):
        find_kind("other")
    assert run_targets(Namespace(kind="", json=False)) == 0
    listed = capsys.readouterr().out
    assert "my_boards:MINE" in listed and "qemu-aarch64" in listed


OWN = {"arm", "armv7", "cpu", "micro", "vta"}


@pytest.mark.parametrize(
    "asked",
    [
        f"base.known_kinds(); assert set({sorted(OWN)}) <= base._kinds.keys()",
        "assert base.find_intrinsic('dsp_smlad_s16s16').name == 'dsp_smlad_s16s16'",
        "assert base.parse_target('vta').kind == 'vta'",
        "from ansor.targets.vta import VTA; assert base.find_kind('vta') is VTA",
    ],
)
def test_own_kinds_are_found_when_they_are_asked_for(asked: str) -> None:
    code = f"import ansor.targets.base as base; assert 'vta' not in base._kinds and {OWN} <= set(base.kind_names())\n{asked}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nobody_takes_the_name_of_an_own_kind() -> None:
    code = "from ansor.targets.base import Kind, find_kind, register_kind; register_kind(Kind('vta', find_kind('cpu').default, ()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "which exists already" in found.stderr


def test_kinds_of_other_packages_are_found_late(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name, value = "abacus", "wood:ABACUS"

        def load(self) -> Kind:
            return Kind("abacus", lambda mcpu: replace(parse_target("cpu"), kind="abacus", mcpu=mcpu), find_kind("cpu").options, mcpu="wood")

    import ansor.targets.base as base

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point()] if group == "ansor.targets" else [])
    monkeypatch.setattr(base, "_kinds", dict(base._kinds))
    assert "abacus" in kind_names()
    target = parse_target("abacus -threads=1")
    assert isinstance(target, Target) and str(target) == "abacus -mcpu=wood -threads=1"


def test_vector_units_follow_the_flags() -> None:
    wide = frozenset({"avx512f", "avx512vl", "avx512dq", "avx512bw", "avx2", "fma"})
    assert vectors_of("x86_64", wide).vector_bytes == 64 and vectors_of("x86_64", wide).vector_registers == 32
    assert vectors_of("x86_64", frozenset({"avx2", "fma"})).vector_bytes == 32
    assert vectors_of("x86_64", frozenset({"sse2"})).vector_bytes == 16
    assert vectors_of("aarch64", frozenset()).vector_registers == 32


def test_caches_are_read_from_files(tmp_path: Path) -> None:
    for k, (level, kind, size) in enumerate([("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K"), ("3", "Unified", "odd")]):
        folder = tmp_path / f"index{k}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size), ("coherency_line_size", "64")):
            (folder / name).write_text(text + "\n")
    assert caches_of(tmp_path) == {(1, "Data"): (48, 64), (1, "Instruction"): (32, 64), (2, "Unified"): (1024, 64)}
    assert caches_of(tmp_path / "nowhere") == {}


def test_features_have_the_names_of_compilers() -> None:
    assert features_of(frozenset({"fpu", "avx2", "avx512_vnni", "avx_vnni", "avx512_bf16"})) == {"avx2", "avx512vnni", "avxvnni", "avx512bf16"}
    assert features_of(frozenset({"asimddp", "i8mm", "fp"})) == {"dotprod", "i8mm"}


def test_a_process_that_may_not_use_matrix_registers_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = frozenset({"avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512_vnni", "amx_tile", "amx_int8", "amx_bf16"})
    monkeypatch.setattr(cpu, "_cpu_flags", lambda path: flags)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for allowed in (True, False):
        monkeypatch.setattr(cpu, "tiles_allowed", lambda allowed=allowed: allowed)
        core, _ = cpu._detected.__wrapped__()
        assert core.features & cpu.TILES == (cpu.TILES if allowed else frozenset())
        assert "avx512vnni" in core.features


def test_only_linux_on_x86_has_matrix_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert not cpu.tiles_allowed()


def test_features_are_added_and_taken_away() -> None:
    before = parse_target("cpu -mcpu=haswell").hardware.features
    assert parse_target("cpu -mcpu=haswell -mattr=+avxvnni,-avx2").hardware.features == before - {"avx2"} | {"avxvnni"}
    assert parse_target("cpu -mcpu=haswell -mattr -avx2").hardware.features == before - {"avx2"}


def test_a_target_has_the_intrinsics_of_its_kind_that_its_features_allow() -> None:
    assert [one.name for one in parse_target("cpu -mcpu=neoverse-v1").intrinsics] == ["neon_sdot", "neon_udot", "neon_usdot_u8s8", "neon_usdot_s8u8"]
    assert not parse_target("cpu -mcpu=cortex-a72").intrinsics
    assert {one.name.partition("_")[0] for one in parse_target("cpu -mcpu=haswell").intrinsics} == {"avx2", "sse2"}


def test_limits_of_a_kind_hold_for_its_programs() -> None:
    nothing = Limit("nothing", lambda loops, machine: False)
    codegen = replace(find_kind("cpu").codegen, limits=(nothing,))
    strict = replace(find_kind("cpu"), name="strict", default=lambda mcpu: replace(parse_target("cpu -mcpu=x86-64"), kind="strict"), codegen=codegen)
    register_kind(strict)
    loops = Sketch(Dag(workloads.matmul(4, 4, 4))).lower_row(())
    assert legal(loops, parse_target("cpu -mcpu=x86-64")) and not legal(loops, parse_target("strict"))


def _with_cost(name: str, cost: Callable[[Target, Loops], Row]) -> Target:
    kind = find_kind("cpu")
    own = replace(kind, name=name, default=lambda mcpu: replace(parse_target("cpu -mcpu=x86-64 -threads=1"), kind=name))
    register_kind(replace(own, codegen=replace(kind.codegen, cost=cost)))
    return parse_target(name)


@pytest.mark.parametrize(("name", "cost", "words"), [
    ("forgetful", lambda target, loops: None, "the cost function of target kind 'forgetful' returns None; return the predicted cost of a program, as a number"),
    ("branching", lambda target, loops: max(loops.body[0].var.extent, 4), "'branching' fails: a recorded column has no truth value.*larger, smaller, choose"),
])  # fmt: skip
def test_a_cost_function_that_is_wrong_is_told(name: str, cost: Callable[[Target, Loops], Row], words: str) -> None:
    task = SearchTask(tensors=workloads.matmul(16, 16, 16), target=_with_cost(name, cost))
    with pytest.raises(TargetError, match=words):
        [space.legal(np.zeros((1, len(space.sizes)), np.int64)) for space in task.spaces]


@pytest.mark.parametrize("text", ["arm", "armv7", "micro"])
def test_devices_that_make_their_own_arrays_have_no_bfloat16(text: str) -> None:
    x, y = (te.placeholder((8,), dtype, name=dtype[0]) for dtype in ("bfloat16", "float32"))
    narrow, plain = (Dag([one, te.compute((8,), lambda i, one=one: one[i] * 2.0, name="z")]) for one in (x, y))
    assert parse_target(text).refusal(narrow) == "b is bfloat16, which only programs for target cpu support; declare float32"
    assert not parse_target(text).refusal(plain) and not parse_target("cpu").refusal(narrow)
