from pathlib import Path

import pytest

from ansor.measure.work_directory import WorkDirectory, remove_stale


def test_live_folders_stay_and_dead_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path))
    with WorkDirectory() as live, WorkDirectory() as other:
        assert live.path != other.path
        dead = live.path.parent / "dead"
        dead.mkdir()
        (dead / "lock").touch()
        remove_stale(live.path.parent)
        assert dead.exists()  # too young to judge
        remove_stale(live.path.parent, grace_seconds=-1)
        assert live.path.exists() and other.path.exists() and not dead.exists()
    assert not live.path.exists()
