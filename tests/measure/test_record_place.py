"""Where records cannot be kept is said before any work."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ansor.errors import RecordError
from ansor.measure.record import Header, RecordFile, load

HEADER = Header("zig cc 0.17.0", (), 0, "0.1.0", (), 0.0)


def both_refuse(path: Path, words: str) -> None:
    for use in (lambda: load(path), lambda: RecordFile(path, HEADER)):
        with pytest.raises(RecordError, match=words):
            use()


def test_pipes_folders_sockets_and_devices(tmp_path: Path) -> None:
    pipe, name = tmp_path / "pipe", tmp_path / "socket"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(name))
        both_refuse(name, "which is a socket; name a plain file")
    both_refuse(pipe, "which is a pipe")
    both_refuse(tmp_path, "which is a folder")
    both_refuse(Path("/dev/null"), "which is a device; name a plain file")
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    both_refuse(link, "which is a device")


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "file").write_text("")
    for path in (Path("a\0b"), loop, tmp_path / "file" / "r.jsonl", tmp_path / ("x" * 300)):
        both_refuse(path, "records cannot be")


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "r.jsonl")
    RecordFile(tmp_path / "link", HEADER).close()
    assert (tmp_path / "r.jsonl").read_bytes() == b""
