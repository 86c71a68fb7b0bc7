from __future__ import annotations

from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.measure.agent.address import read_address, ssh_destination


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_AGENT_KEY", "/etc/key")
    tcp = read_address("agent://10.0.0.7:9190")
    assert (tcp.host, tcp.port, tcp.key, tcp.command) == ("10.0.0.7", 9190, Path("/etc/key"), ())
    assert read_address("agent://board.lan:1?key=/a%20b/key").key == Path("/a b/key")
    assert read_address("agent-stdio:./agent -with 'qemu-aarch64 -cpu max'").command == ("./agent", "-with", "qemu-aarch64 -cpu max")
    ssh = read_address("ssh://pi@board:2222/opt/the agent").command
    assert (ssh[0], ssh[-5:]) == ("ssh", ("-p", "2222", "--", "pi@board", "exec '/opt/the agent'"))
    assert read_address("ssh://board").command[-2:] == ("board", "exec .ansor/agent")


@pytest.mark.parametrize("text", [
    "agent", "agent:", "agent://", "agent://host", "agent://host:", "agent://host:99999", "agent://host:x", "agent://host:1/path", "agent://host:1?kay=x",
    "agent://user@host:1", "agent://[::1:1", "agent-stdio", "agent-stdio:", "agent-stdio:'", "ssh", "ssh://", "ssh:board", "ssh:///agent",
    "ssh://-oProxyCommand=x", "ssh://a b", "ssh://a@-b", "ssh://a;b", "ssh://host:port",
])  # fmt: skip
def test_texts_that_are_none(text: str) -> None:
    with pytest.raises(DeviceError, match="^asked for "):
        read_address(text)


def test_a_destination_is_no_option() -> None:
    assert ssh_destination("pi@board:22") == (("-p", "22"), "pi@board")
    with pytest.raises(DeviceError, match="write a host"):
        ssh_destination("-oProxyCommand=reboot")
