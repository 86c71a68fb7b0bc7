from pathlib import Path

from ansor.codegen.complaints import LONGEST, errors_alone, in_brief
from ansor.codegen.toolchain import compile_shared, find_compiler

GCC = """\
a.c: In function 'f':
a.c:1:20: warning: unused variable 'unused' [-Wunused-variable]
    1 | int f(void) { int unused; return g; }
      |                   ^~~~~~
a.c:1:34: error: 'g' undeclared (first use in this function)
    1 | int f(void) { int unused; return g; }
      |                                  ^
a.c:1:34: note: each undeclared identifier is reported only once"""


def test_errors_keep_their_lines_and_notes() -> None:
    assert errors_alone(GCC).splitlines() == [GCC.splitlines()[0], *GCC.splitlines()[4:]]


def test_what_has_no_errors_is_told_whole() -> None:
    assert errors_alone("a.c:1: warning: odd\n  odd") == "a.c:1: warning: odd\n  odd" and errors_alone("Segmentation fault") == "Segmentation fault"


def test_a_failure_of_a_compiler_is_told_without_its_warnings(tmp_path: Path) -> None:
    text = "void *f(int x) { return x; }\nint g(void) { return missing; }\n"  # clang warns, or refuses, by itself
    said = compile_shared(find_compiler(), [text], tmp_path / "out.so", flags=("-Wno-error=int-conversion", "-Wall")).text
    assert "missing" in said and "warning" not in said.replace("1 warning and 1 error generated.", "")


def test_lists_of_what_a_compiler_knows_are_not_errors() -> None:
    text = "\n".join(["info: available CPUs for architecture 'x86_64':", *(f" processor{number}" for number in range(100)), "", "error: unknown CPU: 'x'"])
    assert errors_alone(text) == in_brief(text) == "error: unknown CPU: 'x'"


def test_a_long_error_is_one_line_with_its_head_and_its_tail() -> None:
    said = in_brief("a.c:1: error: " + "why\n" * 1000 + "the end")
    assert "\n" not in said and said.startswith("a.c:1: error: why") and said.endswith("the end") and len(said) < LONGEST + 60
