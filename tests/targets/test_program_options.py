"""Texts from files name no program, whatever way they are written."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.compat.common.local_target import local_target
from ansor.errors import AnsorError, TargetError
from ansor.targets.base import parse_target
from ansor.targets.program_options import LONGEST, read_target, why_refused, without_programs

PROGRAM = "/no/such/canary"

NAMING = [
    f"llvm -cc={PROGRAM}", f"cpu -cc {PROGRAM}", f"llvm --cc={PROGRAM}", f"llvm ---cc {PROGRAM}", f"llvm '-cc={PROGRAM} -m64'", f'llvm "-cc"={PROGRAM}',
    f"llvm -c'c'={PROGRAM}", f"llvm -c\\c={PROGRAM}", f"llvm\t-cc={PROGRAM}", f"llvm -mcpu=native\n-cc={PROGRAM}", f"llvm -keys=cpu -cc='sh -c \"{PROGRAM}\"'",
    f"llvm -host='llvm -cc={PROGRAM}'", f"cuda --host='llvm -cc={PROGRAM}'", f"llvm -host '\"llvm\" \"-cc={PROGRAM}\"'", f"llvm '-cc={PROGRAM}",
    json.dumps({"kind": "llvm", "cc": PROGRAM}), json.dumps({"kind": "llvm", "-cc": PROGRAM}), json.dumps({"cc": [PROGRAM], "kind": "c"}),
    json.dumps({"kind": "cuda", "host": {"kind": "llvm", "cc": PROGRAM}}), json.dumps({"kind": "cuda", "host": f"llvm -cc={PROGRAM}"}),
    json.dumps({"kind": "llvm", "keys": [f"-cc={PROGRAM}"]}), '{"kind": "llvm", "\\u0063c": "x"}', " " + json.dumps({"kind": "llvm", "cc": PROGRAM}),
    "llvm -host=" + json.dumps(json.dumps({"kind": "llvm", "cc": PROGRAM})),
]  # fmt: skip

HONEST = [
    "llvm", "cpu -threads=1", "llvm -keys=cpu -link-params=0 -mcpu=core-avx2 -model=e5-2666", "cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32",
    "llvm -mcpu=skylake-avx512 -num-cores 4", "opencl -device=mali -model=rk3399 -libs=cc", "cpu -mattr=+avx2,-fma", "llvm -mtriple=aarch64-linux-gnu-cc",
    json.dumps({"kind": "llvm", "keys": ["cpu"], "link-params": False, "mcpu": "core-avx2", "tag": "cc"}), "", "{", "llvm 'unclosed",
    "cuda -model=cc -arch=sm_80",
]  # fmt: skip


@pytest.mark.parametrize("text", NAMING)
def test_a_text_that_names_a_program_is_refused(text: str) -> None:
    assert "names a program" in why_refused(text)
    with pytest.raises(TargetError, match="names a program"):
        read_target(text)


@pytest.mark.parametrize("text", HONEST)
def test_other_texts_are_not(text: str) -> None:
    assert why_refused(text) == "" and without_programs(text) == text


def test_what_is_too_long_or_too_deep_to_look_into_is_refused() -> None:
    deep = "llvm"
    for _ in range(9):
        deep = json.dumps({"host": deep})
    assert "deeply" in why_refused(deep)
    assert f"{LONGEST}" in why_refused("llvm " + "a" * LONGEST)
    assert "deeply" in why_refused(json.dumps({"host": [[[[[[["llvm"]]]]]]]}))


@pytest.mark.parametrize("text", NAMING)
def test_what_is_written_without_it_is_read_again(text: str) -> None:
    written = without_programs(text)
    assert why_refused(written) == "" and PROGRAM not in written and written


def test_the_rest_of_a_target_is_kept() -> None:
    assert without_programs("llvm -mcpu=haswell -cc 'gcc -m64' -threads=2") == "llvm -mcpu=haswell -threads=2"
    assert without_programs("cpu -threads=2 '-cc=gcc -m64'") == "cpu -threads=2"
    assert without_programs('{"kind": "llvm", "cc": "gcc", "mcpu": "haswell"}') == '{"kind": "llvm", "mcpu": "haswell"}'
    assert parse_target("cpu -cc=gcc").compiler == "gcc"  # who writes it himself may


PIECES = ["-", "cc", "c", "=", " ", "'", '"', "\\", "{", "}", "[", "]", ":", ",", "kind", "llvm", "-cc=x", "host", "\n", "-mcpu", "native"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_what_is_not_refused_has_no_compiler_when_it_is_parsed(text: str) -> None:
    for whole in (text, f"llvm {text}", f"cpu {text}", '{"kind": "llvm", ' + text):
        if why_refused(whole):
            continue
        for parse in (parse_target, local_target):
            with suppress(AnsorError):
                assert parse(whole).compiler == ""
