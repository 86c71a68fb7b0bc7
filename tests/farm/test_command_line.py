"""The commands of farms with words that are none: one sentence, at once, and nothing listens beyond this machine without certificates."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.farm.certificates import make_certificates

HERE = ("scheduler", "--listen", "127.0.0.1:0")
WORKER = ("worker", "127.0.0.1:1")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The last line of an error, which is one sentence."""
    try:
        status = main(["farm", *words])
    except SystemExit as ended:  # what argparse refuses
        status = int(str(ended.code))
    error = capsys.readouterr().err
    assert status != 0 and "Traceback" not in error and "unexpected" not in error
    return error.splitlines()[-1]


@pytest.mark.parametrize("address", ["10.0.0.7:0", "0.0.0.0:0", "[::]:0", "board:0", "192.168.1.1"])
@pytest.mark.parametrize("words", [("scheduler", "--listen"), ("worker", "--key", "a", "--device", "local"), ("status",)], ids=lambda words: words[0])
def test_beyond_this_machine_nothing_starts_without_certificates(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], address: str) -> None:
    assert f"a farm at {address}, on another machine, without certificates: `ansor farm init`" in said(capsys, *words, address)


@pytest.mark.parametrize(("words", "sentence"), [
    (("status", "http://127.0.0.1:1"), "give HOST:PORT"), (("status", "a b"), "give HOST:PORT"),
    (("status", "127.0.0.1:" + "9" * 30), "give HOST:PORT"), (("scheduler", "--listen", ":"), "give HOST:PORT"),
    ((*HERE, "--dashboard", "nonsense"), "asked for the dashboard at 'nonsense'; give HOST:PORT"),
    ((*HERE, "--dashboard", "127.0.0.1:x"), "asked for the dashboard at '127.0.0.1:x'; give HOST:PORT"),
    ((*HERE, "--dashboard", "127.0.0.1:99999"), "asked for the dashboard at '127.0.0.1:99999'; give HOST:PORT"),
    ((*HERE, "--dashboard", "0.0.0.0:1"), "asked for the dashboard at 0.0.0.0:1: it has no authentication"),
    ((*HERE, "--patience", "nan"), "argument --patience: 'nan' is not a number"), ((*HERE, "--patience", "1e-300"), "not a time from 1 to 86400 seconds"),
    ((*HERE, "--handshake", "1e300"), "argument --handshake: 1e300 is not a time from 1 to 86400 seconds"),
    ((*HERE, "--certificates", "/nowhere"), "in /nowhere, where scheduler.pem, worker.pem, client.pem are missing; `ansor farm init`"),
    ((*WORKER, "--key", "a b", "--device", "local"), "asked for devices with the key 'a b'; a key is letters"),
    ((*WORKER, "--key", "", "--device", "local"), "asked for devices with the key ''; a key is letters"),
    ((*WORKER, "--key", "a", "--device", "lokal"), "asked for device 'lokal' (did you mean local?); the kinds of devices are agent, "),
    ((*WORKER, "--key", "a", "--device", "agent//board"), "asked for device 'agent//board'; the kinds of devices are agent, "),
    ((*WORKER, "--key", "a", "--device", "agent://board:x"), "asked for device 'agent://board:x'; write agent://HOST:PORT"),
    ((*WORKER, "--key", "a", "--device", "ssh://-oProxyCommand=x"), "asked for an agent through ssh on '-oProxyCommand=x'; write a host"),
    ((*WORKER, "--key", "a", "--device", "gdb://board"), "'gdb://board' is not gdb://HOST:PORT"),
    ((*WORKER, "--key", "a", "--device", "bitbang://board:x"), "remote bitbang server at 'bitbang://board:x'; write bitbang://HOST:PORT"),
    ((*WORKER, "--key", "a", "--device", "serial:/dev/ttyUSB0?baud=fast"), "baud=fast is not a speed"),
    ((*WORKER, "--key", "a", "--device", "socket://board"), "host or port is missing; write socket://host:port"),
    ((*WORKER, "--key", "a", "--device", "local:2"), "asked for device 'local:2'; write local, with nothing after it"),
    ((*WORKER, "--key", "a", "--device", "farm://127.0.0.1:1?key=a"), "which stands for several devices; name one device, and start a worker for each"),
    ((*WORKER, "--key", "a", "--device", ""), "asked for device ''; the kinds of devices are agent, "),
    (("init", "/dev/null/x"), "asked to create certificates in /dev/null/x: Not a directory; name another folder"),
    (("nothing",), "invalid choice: 'nothing'"),
])  # fmt: skip
def test_nonsense_is_told_at_once(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str) -> None:
    assert sentence in said(capsys, *words)


def test_certificates_that_cannot_be_read_are_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_certificates(tmp_path / "mixed")
    shutil.copytree(tmp_path / "mixed", tmp_path / "rubbish")
    shutil.copytree(tmp_path / "mixed", tmp_path / "nobody")
    shutil.copy(tmp_path / "mixed" / "worker.pem", tmp_path / "mixed" / "client.pem")
    (tmp_path / "rubbish" / "client.pem").write_text("rubbish")
    (tmp_path / "nobody" / "authority.pem").write_text("rubbish")
    for name, sentence in (
        ("mixed", "client.pem and .*client.key: they do not belong together"), ("rubbish", "client.pem and .*client.key: they are not PEM"),
        ("nobody", "authority.pem: it holds no certificate"),
    ):  # fmt: skip
        for words in (HERE, ("status", "127.0.0.1:1"), (*WORKER, "--key", "a", "--device", "local", "--supervised", "1")):
            assert re.search(sentence, said(capsys, *words, "--certificates", str(tmp_path / name)))
