"""Files that are whole or not there: at every moment at which the power may go."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ansor.support.safe_files import PRIVATE_PROGRAM, keep, kept, only_ours, write_whole
from tests.power_loss import PowerLoss, every_death

OLD, NEW = b"what was there before\n" * 40, b"what is written now\n" * 60


def _begin(folder: Path, files: dict[str, bytes]) -> Callable[[], None]:
    def begin() -> None:
        for path in folder.iterdir():
            path.unlink()
        for name, content in files.items():
            (folder / name).write_bytes(content)

    return begin


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    place, seen = tmp_path / "file", set()
    for how in every_death(tmp_path, lambda: write_whole(place, NEW), _begin(tmp_path, {"file": OLD})):
        assert place.read_bytes() in (OLD, NEW), how
        seen.add(place.read_bytes())
    assert seen == {OLD, NEW}


def test_once_written_it_stays(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(OLD)
    with PowerLoss(tmp_path) as power:
        write_whole(place, NEW)
    power.lose(names="undone")
    assert place.read_bytes() == NEW and [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_was_kept_is_whole_or_known_not_to_be(tmp_path: Path) -> None:
    note, deaths, broken = tmp_path / "file", 0, 0
    for how in every_death(tmp_path, lambda: keep(note, ".so", NEW), _begin(tmp_path, {})):
        deaths += 1
        found = kept(note, ".so")
        broken += found is None
        assert found is None or found.read_bytes() == NEW, how
        assert keep(note, ".so", NEW) == kept(note, ".so"), how  # the next run
    assert deaths >= 20 and broken


def test_a_program_can_be_run_whenever_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have kept the same one, and be about to run it."""
    replace, modes = os.replace, []

    def replaced(old: str, new: Path) -> None:
        modes.append((new.suffix, os.stat(old).st_mode & 0o777))
        replace(old, new)

    monkeypatch.setattr(os, "replace", replaced)
    place = keep(tmp_path / "agent", ".so", NEW, PRIVATE_PROGRAM)
    assert modes == [(".so", 0o700), ("", 0o600)] and kept(tmp_path / "agent", ".so") == place


def test_of_two_contents_one_is_kept(tmp_path: Path) -> None:
    """Whatever the order in which two processes write."""
    note = tmp_path / "file"
    first, second = keep(note, ".so", OLD), keep(note, ".so", NEW)
    assert first != second and kept(note, ".so") == second and first.read_bytes() == OLD


def _rename_only(place: Path) -> None:
    descriptor = os.open(place.with_suffix(".part"), os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, NEW)
    os.close(descriptor)
    os.replace(place.with_suffix(".part"), place)


def _in_place(place: Path) -> None:
    descriptor = os.open(place, os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, NEW)
    os.fsync(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("careless", [_rename_only, _in_place])
def test_careless_writers_are_found_out(tmp_path: Path, careless: Callable[[Path], None]) -> None:
    """The test's own test: without fsync, or in place, some death leaves neither the old file nor the new one."""
    place = tmp_path / "file"
    left = [place.read_bytes() for _ in every_death(tmp_path, lambda: careless(place), _begin(tmp_path, {"file": OLD}))]
    assert any(content not in (OLD, NEW) for content in left)


@pytest.mark.parametrize("harm", ["empty", "half", "one byte", "more", "no note", "half a note", "empty note", "note no text", "note of elsewhere", "gone"])
def test_damage_is_seen(tmp_path: Path, harm: str) -> None:
    note = tmp_path / "file"
    place = keep(note, ".so", NEW)
    assert kept(note, ".so") == place
    damaged = {"empty": b"", "half": NEW[: len(NEW) // 2], "one byte": NEW[:9] + b"X" + NEW[10:], "more": NEW + b"\0"}
    notes = {"half a note": note.read_bytes()[:20], "empty note": b"", "note no text": b"\xff\xfe\0", "note of elsewhere": b"../../../x\0y"}
    if harm in damaged:
        place.write_bytes(damaged[harm])
    elif harm in notes:
        note.write_bytes(notes[harm])
    else:
        (place if harm == "gone" else note).unlink()
    assert kept(note, ".so") is None


@pytest.mark.parametrize("which", ["note", "file"])
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_can_write_is_not_whole(tmp_path: Path, which: str, mode: int) -> None:
    place = keep(tmp_path / "file", ".so", NEW)
    (place if which == "file" else tmp_path / "file").chmod(mode)
    assert kept(tmp_path / "file", ".so") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_others_own_is_not_whole(tmp_path: Path) -> None:
    place = keep(tmp_path / "file", ".so", NEW)
    os.chown(place, 12345, -1)
    assert kept(tmp_path / "file", ".so") is None and not only_ours(place.stat())


def test_links_stay_and_devices_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for content in (OLD, NEW):
        write_whole(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == content
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", NEW)
    assert os.read(descriptor, 1 << 16) == NEW and (tmp_path / "pipe").is_fifo()
    os.close(descriptor)
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, NEW)
    write_whole(Path("/dev/null"), NEW)
    assert not Path("/dev/null").is_file()


def test_permissions_are_those_of_the_old_file_or_of_the_umask(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(OLD)
    (tmp_path / "old").chmod(0o600)
    before = os.umask(0o027)
    try:
        for name in ("old", "new"):
            write_whole(tmp_path / name, NEW)
        write_whole(tmp_path / "given", NEW, 0o755)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("old", "new", "given")] == [0o600, 0o640, 0o755]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "file", NEW)
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No space left on device: '.*/file'"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", _full)
        write_whole(tmp_path / "file", NEW)
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError, match=r"'.*/none/file'"):
        write_whole(tmp_path / "none" / "file", NEW)


def _full(descriptor: int, content: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
