"""Cached libraries are whole, ours, and built anew when they are not."""

import ctypes
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ansor.codegen import library_cache
from ansor.codegen.library_cache import kept_library
from ansor.codegen.pool_library import pool_library
from ansor.codegen.toolchain import cached_library, find_compiler
from ansor.errors import CacheError
from ansor.measure.turns import turn
from ansor.measure.work_directory import WorkDirectory
from ansor.support import settings
from ansor.support.safe_files import kept
from tests.power_loss import every_death

CONTENT = bytes(range(256)) * 64
TEXT = "int answer(void) { return 42; }"


class Building:
    """A compiler that only counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, place: Path) -> None:
        self.calls += 1
        place.write_bytes(CONTENT)


@pytest.fixture
def build() -> Building:
    return Building()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library_cache, "_checked", {})
    return tmp_path / "cache"


def note_of(place: Path) -> Path:
    return place.with_name(place.name.rpartition("-")[0])


def is_whole(place: Path) -> bool:
    return kept(note_of(place), ".so") == place


def next_process() -> None:
    library_cache._checked.clear()


def test_built_once_and_private(cache: Path, build: Building) -> None:
    place = kept_library("a", build)
    next_process()
    assert kept_library("a", build) == place and build.calls == 1 and is_whole(place)
    assert cache.stat().st_mode & 0o777 == 0o700 and place.parent.stat().st_mode & 0o777 == 0o700 and place.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in place.parent.iterdir()) == ["a", place.name] and place.name.startswith("a-") and place.suffix == ".so"


HARM: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(CONTENT[: len(CONTENT) // 2]),
    "one bit": lambda path: path.write_bytes(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])),
    "longer": lambda path: path.write_bytes(CONTENT + b"\0"),
    "gone": lambda path: path.unlink(),
    "no digest": lambda path: note_of(path).unlink(),
    "empty digest": lambda path: note_of(path).write_bytes(b""),
    "digest of something else": lambda path: note_of(path).write_text("0" * 64 + "\n"),
    "digest no text": lambda path: note_of(path).write_bytes(b"\xff\xfe"),
    "writable by all": lambda path: path.chmod(0o666),
    "digest writable by the group": lambda path: note_of(path).chmod(0o660),
}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:  # a socket's path has at most 107 characters
        here = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "something").write_text("in it")


KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": _folder,
    "a socket": _socket,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nowhere/at/all"),
    "a link to itself": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["library", "digest"])
@pytest.mark.parametrize("when", ["in the next process", "in the same process"])
def test_what_is_no_file_is_not_read_and_built_anew(cache: Path, build: Building, kind: str, which: str, when: str) -> None:
    """Reading a pipe that nobody writes to, or a device, would never end."""
    place = kept_library("a", build)
    harmed = place if which == "library" else note_of(place)
    harmed.unlink()
    KINDS[kind](harmed)
    if when == "in the next process":
        next_process()
    assert kept_library("a", build) == place and build.calls == 2
    next_process()
    assert is_whole(place) and harmed.is_file() and not harmed.is_symlink() and kept_library("a", build) == place and build.calls == 2


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("when", ["in the next process", "in the same process"])
def test_what_is_damaged_is_built_anew(cache: Path, build: Building, harm: str, when: str, caplog: pytest.LogCaptureFixture) -> None:
    place = kept_library("a", build)
    HARM[harm](place)
    if when == "in the next process":
        next_process()
    with caplog.at_level(logging.INFO, "ansor"):
        kept_library("a", build)
    next_process()
    assert kept_library("a", build) == place and build.calls == 2 and is_whole(place) and place.read_bytes() == CONTENT
    assert all(record.levelno < logging.WARNING for record in caplog.records)


def test_power_lost_at_every_operation(cache: Path, build: Building) -> None:
    """After each death the next run has a whole library; none is used unchecked."""
    def begin() -> None:
        next_process()
        shutil.rmtree(cache / "libraries")

    kept_library("a", build)
    deaths = 0
    for how in every_death(cache, lambda: kept_library("a", build), begin):
        deaths += 1
        next_process()
        place = kept_library("a", build)
        assert place.read_bytes() == CONTENT and is_whole(place), how
    assert deaths >= 20


def test_power_lost_while_a_damaged_one_is_replaced(cache: Path, build: Building) -> None:
    def begin() -> None:
        next_process()
        shutil.rmtree(cache / "libraries")
        kept_library("a", build).write_bytes(CONTENT[:99])

    kept_library("a", build)
    for how in every_death(cache, lambda: kept_library("a", build), begin):
        next_process()
        assert kept_library("a", build).read_bytes() == CONTENT, how


def test_what_dead_builders_left_is_removed_in_time(cache: Path, build: Building) -> None:
    folder = kept_library("a", build).parent
    for name in ("cc-old", "cc-new"):
        (folder / name).mkdir()
        (folder / name / "source0.c").write_text("int x;")
        (folder / f".{name}").write_text("half")
    (folder / "b-0123456789abcdef.so").write_text("of a build whose note was lost")
    for name in ("cc-old", ".cc-old", "b-0123456789abcdef.so"):
        os.utime(folder / name, (1, 1))
    kept_library("b", build)
    assert len(list(folder.glob("b-*"))) == 1
    assert sorted(path.name for path in folder.glob("*cc-*")) == [".cc-new", "cc-new"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777, 0o722])
def test_a_folder_that_others_can_write_to_is_refused(cache: Path, build: Building, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    for use in (lambda: kept_library("a", build), WorkDirectory, settings.cache_directory):
        with pytest.raises(CacheError, match=f"others can write to the cache folder .*mode {mode & 0o777:o}.*chmod go-w"):
            use()
    cache.chmod(0o755)
    kept_library("a", build)


def test_so_is_a_part_of_it(cache: Path, build: Building) -> None:
    kept_library("a", build).parent.chmod(0o777)
    with pytest.raises(CacheError, match="others can write"):
        kept_library("a", build)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give links away")
def test_a_link_that_another_user_can_turn_elsewhere_is_refused(cache: Path, build: Building, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o700)
    cache.symlink_to(tmp_path / "ours")
    kept_library("a", build)
    os.lchown(cache, 12345, 12345)
    with pytest.raises(CacheError, match=r"is a link that belongs to user 12345, and this is user 0: .* set ANSOR_CACHE to a folder of your own"):
        kept_library("a", build)
    assert build.calls == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_folder_of_somebody_else_is_refused(cache: Path, build: Building) -> None:
    cache.mkdir(mode=0o700)
    os.chown(cache, 12345, -1)
    with pytest.raises(CacheError, match=r"belongs to user 12345, and this is user 0: .* set ANSOR_CACHE to a folder of your own"):
        kept_library("a", build)


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
def test_usual_folders_are_fine(cache: Path, build: Building, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    assert is_whole(kept_library("a", build))


def _read_only(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As on a read-only file system; root may write anywhere else. Returns where temporary files go."""
    real, temporary = os.access, cache.parent / "temporary"
    temporary.mkdir(mode=0o1777)
    monkeypatch.setattr(os, "access", lambda path, mode: cache not in (path, *Path(path).parents) and real(path, mode))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return temporary


def test_a_read_only_cache_serves_and_is_left_alone(cache: Path, build: Building, monkeypatch: pytest.MonkeyPatch) -> None:
    there = kept_library("a", build)
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    temporary = _read_only(cache, monkeypatch)
    next_process()
    assert kept_library("a", build) == there and build.calls == 1
    assert kept_library("b", build).parent.parent == temporary / f"ansor-{os.geteuid()}" and build.calls == 2
    next_process()
    assert is_whole(kept_library("b", build)) and build.calls == 2
    with WorkDirectory() as work, turn():
        assert temporary in work.path.parents
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_the_temporary_folder_is_looked_at_too(cache: Path, build: Building, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(0o700)
    (_read_only(cache, monkeypatch) / f"ansor-{os.geteuid()}").mkdir()
    (cache.parent / "temporary" / f"ansor-{os.geteuid()}").chmod(0o777)
    with pytest.raises(CacheError, match="others can write"):
        kept_library("b", build)


def test_processes_that_build_at_once_do_each_other_no_harm(cache: Path, build: Building) -> None:
    """Compilers give other bytes each time; every process gets a whole library, and so does the next one."""
    program = (
        "import os, ctypes\nfrom pathlib import Path\nfrom ansor.codegen.library_cache import kept_library\nfrom ansor.support.safe_files import digest\n"
        "for k in range(20):\n"
        "    place = kept_library(f'a{k}', lambda place: place.write_bytes(os.urandom(5000)))\n"
        "    assert place.stem.endswith(digest(place.read_bytes())[:16])\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=120)[1] for process in running] == [""] * 4
    for k in range(20):
        assert is_whole(kept_library(f"a{k}", build))
    assert build.calls == 0


def test_no_room(cache: Path, build: Building, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    kept_library("a", build)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CacheError, match=r"cannot be stored .*No space left.*free some space, or set ANSOR_CACHE"):
        kept_library("b", build)
    monkeypatch.undo()


def _cut(place: Path, size: int) -> None:
    """A shorter file in the place of another, which may be loaded here."""
    beside = place.with_suffix(".cut")
    beside.write_bytes(place.read_bytes()[:size])
    beside.chmod(0o600)
    beside.replace(place)


@pytest.mark.compiler
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_real_library_that_was_cut_is_built_and_loaded_again(cache: Path, share: float) -> None:
    place = cached_library(find_compiler(), "test-cut", TEXT)
    _cut(place, int(share * place.stat().st_size))
    again = cached_library(find_compiler(), "test-cut", TEXT)
    assert is_whole(again) and ctypes.CDLL(str(again)).answer() == 42


@pytest.mark.compiler
@pytest.mark.parametrize("size", [0, 6000])
def test_a_thread_pool_that_was_cut_does_not_crash_the_next_process(cache: Path, size: int) -> None:
    place = pool_library(find_compiler())
    _cut(place, size)
    program = "from ansor.codegen.pool_library import shared_pool; assert shared_pool(2).handle"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert kept(note_of(place), ".so") is not None


@pytest.mark.parametrize("name", ["new\nline", "t\tab", "r\rx", "del\x7f", "byte\udcff"])
def test_names_that_compilers_cannot_write_down_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_CACHE", f"{tmp_path}/{name}")
    with pytest.raises(CacheError, match="the name of the cache folder is '[ -~]*', with a control character or bytes that are not UTF-8; set ANSOR_CACHE"):
        settings.cache_directory()
    assert not list(tmp_path.iterdir())
