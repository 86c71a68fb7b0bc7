"""Lines at the end of log files: permissions, and a torn last line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansor.compat.common.log_files import append, put
from ansor.errors import RecordError


def test_new_files_have_the_permissions_that_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        append(tmp_path / "appended", b"1\n")
        put(tmp_path / "put", b"1\n")
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("appended", "put")] == [0o664, 0o664]


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, b"1\n")
    log.chmod(0o600)
    put(log, b"2\n")
    assert log.stat().st_mode & 0o777 == 0o600 and log.read_bytes() == b"2\n"


def test_a_torn_line_is_ended_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"1\n2")
    append(log, b"3\n")
    assert log.read_bytes() == b"1\n2\n3\n"


def test_a_log_that_cannot_be_read_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"1\n")
    opened = os.open

    def write_only(path: str | Path, flags: int, mode: int = 0o777) -> int:  # root may read every file, so the permissions do not do it
        if flags & os.O_ACCMODE != os.O_WRONLY:
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", write_only)
    append(log, b"2\n")
    monkeypatch.undo()
    assert log.read_bytes() == b"1\n2\n"


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="records cannot be written to .*: Is a directory; name another file"):
        append(tmp_path, b"1\n")
