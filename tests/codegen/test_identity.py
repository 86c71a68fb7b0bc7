"""Equal machine code is told from objects for any processor."""

from pathlib import Path

import pytest

from ansor.codegen.identity import code_digests
from ansor.codegen.toolchain import compile_files, find_compiler

TEXT = """
static const float table[4] = {{1, 2, 3, {last}}};
extern void outside(void);
float helper(const float *x, int i) {{ outside(); return x[i] * table[i & 3]; }}
float one(const float *x, int {name}) {{ return helper(x, {name}) + helper(x, {name} + 1); }}
float two(const float *x, int i) {{ return x[i] {sign} 1; }}
"""


def digests(folder: Path, triple: str, name: str = "i", last: str = "4", sign: str = "+") -> dict[str, str]:
    place = folder / "code.o"
    flags = ("-target", triple, "-O2", "-c", "-g0", "-ffunction-sections", "-fno-inline", "-fPIC", "-fno-sanitize=all")
    compiled = compile_files(find_compiler("zig"), [TEXT.format(name=name, last=last, sign=sign)], place, flags)
    assert compiled.ok, compiled.text
    return code_digests(place, ["one", "two", "none"])


@pytest.mark.compiler
@pytest.mark.parametrize("triple", ["x86_64-linux-musl", "aarch64-linux-musl", "arm-linux-musleabihf", "riscv64-linux-musl", "riscv32-linux-musl"])
def test_what_a_function_refers_to_counts(tmp_path: Path, triple: str) -> None:
    first, same = digests(tmp_path, triple), digests(tmp_path, triple, name="place")
    assert set(first) == {"one", "two"} and first == same and first["one"] != first["two"]
    constants, sign = digests(tmp_path, triple, last="5"), digests(tmp_path, triple, sign="-")
    assert constants["one"] != first["one"] and constants["two"] == first["two"]
    assert sign["one"] == first["one"] and sign["two"] != first["two"]


@pytest.mark.compiler
def test_functions_of_other_files_count_by_their_digests_where_they_are_known(tmp_path: Path) -> None:
    digests(tmp_path, "riscv32-linux-musl")
    by_name, *others = (code_digests(tmp_path / "code.o", ["one", "two"], outside) for outside in (None, {}, {"outside": "a"}, {"outside": "b"}))
    assert by_name == others[0] and len({one["one"] for one in (by_name, *others)}) == 3 and len({one["two"] for one in (by_name, *others)}) == 1


def test_other_files_have_no_digests(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no object")
    assert code_digests(tmp_path / "text", ["one"]) == {}
