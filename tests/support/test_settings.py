"""What the environment says, or a sentence about it."""

from __future__ import annotations

import pytest

from ansor.errors import ArgumentError
from ansor.support import settings


def test_compiler_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_JOBS", " 3 ")
    assert settings.jobs() == 3
    monkeypatch.setenv("ANSOR_JOBS", "")
    assert settings.jobs() == settings.cores()


def test_how_ssh_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANSOR_SSH", raising=False)
    assert settings.ssh_command() == ("ssh",)
    monkeypatch.setenv("ANSOR_SSH", "ssh -F '/a folder/config'")
    assert settings.ssh_command() == ("ssh", "-F", "/a folder/config")
    monkeypatch.setenv("ANSOR_SSH", "ssh '")
    with pytest.raises(ArgumentError, match="^ANSOR_SSH is .*; set it to a command"):
        settings.ssh_command()


@pytest.mark.parametrize("text", ["abc", "0", "-1", "1.5", "²"])
def test_no_number_of_processes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_JOBS", text)
    with pytest.raises(ArgumentError, match="ANSOR_JOBS is .*; set it to a whole number"):
        settings.jobs()
