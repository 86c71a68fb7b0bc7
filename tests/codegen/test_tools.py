"""Called directly or by the driver, compiler and linker make the same; a linker that is called wrongly is left to the driver."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from ansor.codegen import compiler_commands as commands_module
from ansor.codegen import tools as tools_module
from ansor.codegen.artifact import LIBRARY, PROGRAM
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.compiler_commands import compiler_commands
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import FIRST_CALL_SECONDS, Compiled, Compiler, call_tool, compile_files, find_compiler
from ansor.codegen.tools import LIBRARIES, CallLimits, Tools
from ansor.errors import ToolchainError

pytestmark = pytest.mark.compiler
FLAGS, LINK_FLAGS = ("-O2", "-fPIC", "-c"), ("-shared", "-fPIC")


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools(find_compiler("zig"), FLAGS, LINK_FLAGS, CallLimits(60.0))


def built(tools: Tools, folder: Path) -> tuple[bytes, int]:
    """The object, and what its function gives."""
    assert tools.compiled(["int twice(int x) { return 2 * x; }"], [folder / "made.o"]).ok
    assert tools.linked([folder / "made.o"], folder / "made.so").ok
    assert sorted(path.name for path in folder.iterdir()) == ["made.o", "made.so"]
    return (folder / "made.o").read_bytes(), ctypes.CDLL(str(folder / "made.so")).twice(21)


def test_the_driver_makes_the_same(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("direct", "driven"):
        (tmp_path / name).mkdir()
    assert compiler_commands(tools.compiler, FLAGS, LINK_FLAGS, LIBRARIES) is not None
    _, answer = built(tools, tmp_path / "direct")
    monkeypatch.setattr(tools_module, "compiler_commands", lambda *words: None)
    assert (answer, built(tools, tmp_path / "driven")[1]) == (42, 42)


@pytest.mark.parametrize(("target", "form"), [("", LIBRARY), ("", PROGRAM), ("aarch64-linux-musl", PROGRAM)])
def test_candidates_have_the_same_code(target: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = CToolchain(find_compiler("zig"), "cortex_a72" if target else "native", target)
    toolchain.prepare(form)
    text = "void one(void *const *args, unsigned char *workspace, void *f, void *p) { float *a = args[0]; for (int i = 0; i < 99; ++i) a[i] += 1; }\n"
    source = CSource(text, "one", ())
    made = [toolchain.build([source], form, tmp_path / "direct", timeout=60)]
    monkeypatch.setattr(tools_module, "compiler_commands", lambda *words: None)
    made.append(toolchain.build([source], form, tmp_path / "driven", timeout=60))
    assert made[0].artifacts[0].digest == made[1].artifacts[0].digest != ""
    assert not made[0].said.command[0].endswith("python") and made[0].said.command != made[1].said.command


@pytest.mark.parametrize("driven", [False, True])
def test_programs_that_are_built_together_are_those_that_are_built_alone(driven: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if driven:
        monkeypatch.setattr(tools_module, "compiler_commands", lambda *words: None)
    toolchain = CToolchain(find_compiler("zig"))
    toolchain.prepare(PROGRAM)
    text = "void one(void *const *args, unsigned char *workspace, void *f, void *p) { float *a = args[0]; for (int i = 0; i < 99; ++i) a[i] += %d; }\n"
    sources = [CSource(text % number, "one", ()) for number in range(3)]
    made = toolchain.build(sources, PROGRAM, tmp_path / "all", timeout=60)
    alone = [toolchain.build([one], PROGRAM, tmp_path / f"one{number}", timeout=60).artifacts[0] for number, one in enumerate(sources)]
    assert made.said.ok and [one.digest for one in made.artifacts] == [one.digest for one in alone] and len({one.digest for one in alone}) == 3
    assert [one.path.read_bytes() for one in made.artifacts] == [one.path.read_bytes() for one in alone]
    assert [one.source for one in made.artifacts] == sources and all(one.form == PROGRAM for one in made.artifacts)
    wrong = CSource("void one(void) { nowhere(); int }\n", "one", ())
    refused = toolchain.build([sources[0], wrong], PROGRAM, tmp_path / "wrong", timeout=60)
    assert not refused.artifacts and refused.said.kind == "compile"


def test_what_does_not_compile_is_said(tools: Tools, tmp_path: Path) -> None:
    said = tools.compiled(["int right;", "int wrong(void) { return nowhere; }"], [tmp_path / "right.o", tmp_path / "made.o"])
    assert said.kind == "compile" and "nowhere" in said.text and not list(tmp_path.iterdir())


def test_what_takes_too_long_is_said_in_few_words(tools: Tools, tmp_path: Path) -> None:
    """The call of clang behind the driver has hundreds of flags, and the text goes into the records."""
    said = replace(tools, limits=CallLimits(1e-3)).compiled(["int x;"], [tmp_path / "made.o"])
    assert said.kind == "compile_timeout" and said.text.startswith("stopped after 0.0 s: ") and len(said.text) < 500 and not list(tmp_path.iterdir())


def test_a_linker_that_misses_its_files_is_left_to_the_driver(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = compiler_commands(tools.compiler, FLAGS, LINK_FLAGS, LIBRARIES)
    assert known is not None
    lost = replace(known, linking=tuple(word.replace("/", "/nowhere/") if word.endswith(".a") else word for word in known.linking))
    assert not call_tool(lost.link_command([tmp_path / "made.o"], tmp_path / "x"), {}, 60.0).ok
    monkeypatch.setattr(tools_module, "compiler_commands", lambda *words: lost)
    limits: list[float] = []

    def noting(*words: object, timeout: float, **options: object) -> Compiled:
        limits.append(timeout)
        return compile_files(*words, timeout=timeout, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(tools_module, "compile_files", noting)
    assert built(tools, tmp_path)[1] == 42
    assert limits == [FIRST_CALL_SECONDS], "a driver that makes its libraries again takes longer than a candidate may"


def test_a_compiler_that_was_removed_is_said(tools: Tools, tmp_path: Path) -> None:
    gone = replace(tools, compiler=replace(tools.compiler, command=("/nowhere/zig", "cc")))
    with pytest.raises(ToolchainError, match=r"'/nowhere/zig' could not be started: .*; name another with --cc or \$CC"):
        gone.compiled(["int x;"], [tmp_path / "made.o"])


def test_other_compilers_are_called_as_they_are() -> None:
    assert compiler_commands(Compiler("gcc", ("gcc",), "gcc 12"), FLAGS, LINK_FLAGS, LIBRARIES) is None


FEATURE = "-target-feature"


def features(target: tuple[str, ...]) -> list[str]:
    """The features that a compiler is told for a processor."""
    commands = compiler_commands(find_compiler("zig"), (*target, "-O2", "-ffreestanding"), ("-nostartfiles", *target))
    assert commands is not None
    return [word for before, word in pairwise(commands.compiling) if before == FEATURE]


@pytest.mark.parametrize(("core", "added"), [("cortex_m4+vfp4d16sp", "+vfp4d16sp"), ("cortex_m3", "+thumb2")])
def test_features_that_a_processor_does_not_have_are_left_out(core: str, added: str) -> None:
    told = features(("-target", "thumb-freestanding-eabihf" if "fp" in core else "thumb-freestanding-eabi", f"-mcpu={core}"))
    assert added in told and not any(one.startswith("-") for one in told)


# clang's Cortex-M55 has doubles, which zig's has not.
@pytest.mark.parametrize("core", ["cortex_m4-dsp", "native", "cortex_m55+fp_armv8d16sp+mve_fp"])
def test_features_that_a_processor_lacks_are_told(core: str) -> None:
    target = () if core == "native" else ("-target", "thumb-freestanding-eabihf" if "fp" in core else "thumb-freestanding-eabi")
    told = features((*target, f"-mcpu={core}"))
    assert any(one.startswith("-") for one in told) and ("-dsp" in told) == (core == "cortex_m4-dsp")


def test_features_that_another_flag_takes_away_are_told() -> None:
    assert "-hwdiv" in features(("-target", "thumb-freestanding-eabi", "-mcpu=cortex_m3", "-Xclang", FEATURE, "-Xclang", "-hwdiv"))


@pytest.mark.parametrize(
    ("flags", "only_adds"),
    [
        (("-ffreestanding", "-mcpu=cortex_m4+vfp4d16sp"), True),
        (("-mcpu=cortex_a72",), False),  # for a system
        (("-ffreestanding",), False),  # for any processor
        (("-ffreestanding", "-mcpu=cortex_m4", "-mcpu=cortex_m4-dsp"), False),
        (("-ffreestanding", "-mcpu=cortex_m4", "-mfpu=none"), False),
    ],
)
def test_which_flags_only_add_features(flags: tuple[str, ...], only_adds: bool) -> None:
    assert commands_module._only_adds(flags) == only_adds


COMPILER = """import sys, pathlib
text = str("-b" in sys.argv)
if {fails} and text == "False":
    sys.exit(1)
if "-E" in sys.argv:
    print({macros})
else:
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text({code})
"""
"""Its object and its macros may tell that it was called without a feature."""


@pytest.mark.parametrize(
    ("code", "macros", "fails", "shorter"),
    [("'same'", "'same'", False, True), ("text", "'same'", False, False), ("'same'", "text", False, False), ("'same'", "'same'", True, False)],
)
def test_features_are_told_if_the_code_or_macros_would_differ(code: str, macros: str, fails: bool, shorter: bool, tmp_path: Path) -> None:
    (tmp_path / "cc.py").write_text(COMPILER.format(code=code, macros=macros, fails=fails))
    command = [sys.executable, str(tmp_path / "cc.py"), FEATURE, "+a", FEATURE, "-b"]
    assert commands_module._shorter(command, tmp_path) == (command[:-2] if shorter else command)
