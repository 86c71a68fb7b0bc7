"""Networks as C alone: built by gcc and clang without a warning and under their sanitizers, right by their own self-test, and for several instruction sets."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ansor
from ansor.codegen.toolchain import find_compiler, zig_caches
from ansor.errors import ArgumentError, ModelError
from ansor.networks.instruction_sets import KNOWN, instruction_sets
from ansor.support.settings import environment_with
from tests.c_compilers import need_compiler
from tests.commands import record_files
from tests.emulators import need_emulators
from tests.networks.exported import Library, built, threads_of

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
ISAS = ("x86-64-v3", "x86-64-v4")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Words(nn.Module):
    """Rows that are looked up, a classifier and indices as results."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.classes = nn.Embedding(20, 8), nn.Linear(8, 3)

    def forward(self, words: torch.Tensor) -> dict[str, object]:
        return {"classes": self.classes(self.words(words).mean(1)), "twice": (words * 2, words)}


def images() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)).eval()


def said(*command: object) -> str:
    """What a program says that ends well."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def spoil(folder: Path, place: int, value: int) -> None:
    """Another byte among the recorded values."""
    recorded = bytearray((folder / "selftest.bin").read_bytes())
    recorded[place] = value if value >= 0 else recorded[place] ^ 0x40
    (folder / "selftest.bin").write_bytes(recorded)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_self_test_is_right_and_finds_what_is_wrong(threads: int, tmp_path: Path) -> None:
    side = {1: 8, 2: 64}[threads]  # large enough for threads to pay
    example = torch.randn(1, 3, side, side)
    network = ansor.compile(images(), (example,), f"cpu -threads={threads}", library=False)
    folder = network.export(tmp_path / "net", (example,))
    assert threads_of(network) == threads
    test = built(folder, [need_compiler("gcc")])
    assert said(test, folder) == "native: right\n"
    assert example.numpy().tobytes() == (folder / "selftest.bin").read_bytes()[: example.numel() * 4]
    spoil(folder, -1, -1)
    found = subprocess.run([test, folder], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (1, "native: wrong, 1 outputs\n")
    (folder / "constants.bin").write_bytes(b"")
    assert subprocess.run([test, folder], capture_output=True).returncode == 2


def test_values_may_differ_by_a_thousandth_of_the_largest(tmp_path: Path) -> None:
    """Equal values count for the largest, infinite ones do not."""
    folder = ansor.export(nn.LeakyReLU(1.0), torch.ones(2), tmp_path / "net", isas=(), embed=True)
    test = built(folder, [need_compiler("gcc")])
    pairs = [([1.0, 1e-8], [1.0, 2e-8]), ([0.0, 0.0], [-0.0, 0.0]), ([np.inf, 1.0], [np.inf, 1.0])]
    wrong = [([1.0, 1e-2], [1.0, 2e-2]), ([np.inf, 1.0], [np.inf, 1.1]), ([np.inf, 1.0], [3e38, 1.0]), ([1.0, 1.0], [np.nan, 1.0]), ([1e-30, 0.0], [0.0, 0.0])]
    for place, (computed, recorded) in enumerate([*pairs, *wrong]):
        (folder / "selftest.bin").write_bytes(np.array([computed, recorded], "<f4").tobytes())
        found = subprocess.run([test, folder], capture_output=True, text=True)
        assert found.stdout == ("c99: right\n" if place < len(pairs) else "c99: wrong, 1 outputs\n"), (computed, recorded)


def test_look_ups_and_whole_numbers_of_made_up_inputs(tmp_path: Path) -> None:
    folder = ansor.compile(Words().eval(), (torch.arange(6).reshape(1, 6),), "cpu -threads=1", library=False).export(tmp_path / "net", embed=True)
    test = built(folder, [need_compiler("gcc")])
    assert said(test, folder) == "native: right\n" and not (folder / "constants.bin").exists()
    spoil(folder, 0, 20)
    assert subprocess.run([folder / "test", folder], capture_output=True, text=True).stdout == "native: an index is out of range\n"


@dataclass(frozen=True)
class Exported:
    """A model, its example and the folder of its files."""

    model: nn.Module
    example: torch.Tensor
    folder: Path

    def copied(self, place: Path) -> Path:
        """A copy of the folder, to build in."""
        return Path(shutil.copytree(self.folder, place / "net"))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A network for several instruction sets."""
    model, example = images(), torch.randn(1, 3, 8, 8)
    return Exported(model, example, ansor.export(model, (example,), tmp_path_factory.mktemp("several") / "net", isas=ISAS))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_several_instruction_sets_under_sanitizers(compiler: str, several: Exported, tmp_path: Path) -> None:
    folder = several.copied(tmp_path)
    found = said(built(folder, [need_compiler(compiler), *SANITIZED]), folder).split("\n")
    assert found[-2:] == ["c99: right", ""] and set(found[:-2]) <= {f"{isa}: right" for isa in ISAS}
    assert "vector_size" not in "".join(path.read_text() for path in (folder / "kernels" / "c99").glob("*.c"))


def test_an_instruction_set_gives_the_bytes_of_the_network_compiled_for_it(several: Exported, tmp_path: Path) -> None:
    model, example, folder = several.model, several.example, several.copied(tmp_path)
    sizes = [int(re.findall(rf"{name}_BYTES (\d+)", (folder / "network.h").read_text())[0]) for name in ("ARENA", "WORKSPACE")]
    library = Library(folder, ISAS)
    assert list(library.variants) == ["x86-64-v4", "x86-64-v3", "c99"]
    here = [name for name, one in library.variants.items() if name != "c99" and one.runs_here()]
    for isa in here:
        wanted = np.asarray(ansor.compile(model, (example,), f"cpu -mcpu={isa} -threads=1", library=False)(example.numpy()))
        assert library.outputs(isa, (sizes[0], sizes[1]), example.numpy(), wanted).tobytes() == wanted.tobytes()


def test_arm_runs_what_it_has(tmp_path: Path) -> None:
    need_emulators()
    folder = ansor.export(images(), (torch.randn(1, 3, 8, 8),), tmp_path / "net", isas=("armv8.2-a+dotprod", "x86-64-v3"))
    command = [*find_compiler().command, "-target", "aarch64-linux-musl"]
    objects = []
    for source in (path for place in ("", "kernels/c99", "kernels/armv8.2-a+dotprod") for path in (folder / place).glob("*.c")):
        objects.append(str(source.with_suffix(".o")))
        subprocess.run([*command, "-mcpu=cortex_a76", "-O1", "-c", str(source), "-o", objects[-1]], check=True)
    usual = environment_with(zig_caches(tmp_path))  # with another cache, or with debug information, the compiler would build a C library for this alone
    subprocess.run([*command, "-mcpu=baseline", "-static", "-s", *objects, "-o", str(folder / "test"), "-lm"], check=True, env=usual)
    assert said("qemu-aarch64", "-cpu", "cortex-a76", folder / "test", folder) == "armv8.2-a+dotprod: right\nc99: right\n"


@pytest.mark.parametrize(("isas", "embed", "right"), [(ISAS, True, ISAS), (("x86-64-v3", "armv8-a"), False, ("x86-64-v3",)), ((), False, ())])
def test_the_commands_in_the_readme_work(isas: tuple[str, ...], embed: bool, right: tuple[str, ...], tmp_path: Path) -> None:
    need_compiler("gcc")
    folder = ansor.export(nn.Linear(8, 4).eval(), torch.randn(2, 8), tmp_path / "net", isas=isas, embed=embed)
    for_arm, several, text = (folder / "README.md").read_text().rpartition("On x86-64 processors:")
    assert bool(several) == ("armv8-a" in isas) == ("-march=armv8-a -c *.c)" in for_arm)
    found = said_by_commands(text, folder)
    assert found[-1] == "c99: right" and set(found[:-1]) <= {f"{isa}: right" for isa in right}


def test_the_readme_of_a_compiled_network(tmp_path: Path) -> None:
    need_compiler("gcc")
    folder = ansor.compile(nn.Linear(8, 4).eval(), torch.randn(2, 8), "cpu -threads=1", library=False, progress=False).export(tmp_path / "net")
    text = (folder / "README.md").read_text()
    assert "A network in C for native.\n" in text and "elsewhere, name the processor that the network was made for; with CMake that is `-DANSOR_MARCH=`" in text
    assert said_by_commands(text, folder) == ["native: right"]
    found = subprocess.run([folder / "selftest"], cwd=tmp_path, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (2, "./constants.bin cannot be opened; usage: selftest FOLDER, the folder of the exported files\n")


def said_by_commands(text: str, folder: Path) -> list[str]:
    """What the commands of a README say that need no CMake."""
    commands = re.findall(r"^    (\(?c[cd] .*)$", text, re.MULTILINE)
    done = subprocess.run(" && ".join(commands), shell=True, cwd=folder, capture_output=True, text=True)
    assert len(commands) > 1 and done.returncode == 0 and "warning" not in done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_cmake_builds_and_tests_it(compiler: str, tmp_path: Path) -> None:
    folder = ansor.export(nn.Linear(64, 64).eval(), torch.randn(1024, 64), tmp_path / "net", isas=("x86-64-v3", "armv8-a"), threads=2, embed=True)
    assert any("parallel_for(pool, " in source.read_text() for source in (folder / "kernels" / "x86-64-v3").glob("*.c"))
    made = ["cmake", "-S", str(folder), "-B", "build", f"-DCMAKE_C_COMPILER={need_compiler(compiler)}", "-DCMAKE_C_FLAGS=-Werror"]
    for command in (made, ["cmake", "--build", "build"], ["ctest", "--test-dir", "build"]):
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert found.returncode == 0 and "warning" not in found.stdout + found.stderr, found.stdout + found.stderr


def test_instruction_sets_are_preferred_as_processors_grow() -> None:
    names = [one.name for one in KNOWN]
    assert [one.name for one in instruction_sets(names)] == [*reversed(names), "c99"] and [one.name for one in instruction_sets(())] == ["c99"]
    with pytest.raises(ArgumentError, match="give a tuple of x86-64-v2, .*; c99, which runs everywhere, is always added"):
        instruction_sets(("avx9",))


def test_records_that_no_instruction_set_uses_are_told(tmp_path: Path) -> None:
    model, x = nn.Linear(8, 4).eval(), torch.randn(2, 8)
    records = record_files.recorded(tmp_path / "r.jsonl", *ansor.extract_tasks(model, x, "cpu -threads=1").tasks)
    with pytest.warns(ansor.AnsorWarning, match="no program in .*r.jsonl is used, because it holds programs for cpu -mcpu=native -threads=1; tune for"):
        ansor.export(model, x, tmp_path / "net", isas=("x86-64-v3",), records=records, progress=False)


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="runs in PyTorch"), pytest.warns(ansor.AnsorWarning):
        ansor.export(nn.Linear(4, 2).eval().half(), (torch.zeros(1, 4).half(),), tmp_path / "net")
    with pytest.raises(ArgumentError, match="threads=0"):
        ansor.export(nn.Linear(4, 2).eval(), (torch.zeros(1, 4),), tmp_path / "net", threads=0)


class _Extreme(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.max(x, 1)


def test_results_with_names_are_exported(tmp_path: Path) -> None:
    """`torch.max` returns a tuple whose fields are `values` and `indices`."""
    found = ansor.compile(_Extreme().eval(), (torch.tensor([[1.0, 3.0], [5.0, 2.0]]),), "cpu -threads=1", library=False).export(tmp_path / "net")
    assert (found / "network.h").is_file()
