"""How to reach a farm: addresses, the text form of its devices, certificates."""

from __future__ import annotations

import ipaddress
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from ansor.errors import DeviceError
from ansor.farm.certificates import AUTHORITY, ROLES
from ansor.support import settings
from ansor.support.text import clip

if TYPE_CHECKING:
    from distributed.security import Security

PORT = 8786
KEY = "[A-Za-z0-9_.-]+"
SUSPENDED = "suspended:"
"""Prefix of a suspended device's key. A key cannot contain a colon, so no client can request such a device."""

_HOST = r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?"  # a name, an IPv4 address or an IPv6 address
_OPTIONS = ("key", "certificates", "slots", "canary")


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """The address of a scheduler. certificates: their folder; None for a farm on this machine only, which needs no certificates."""

    host: str
    port: int
    certificates: Path | None

    @property
    def url(self) -> str:
        """The address as Dask writes it."""
        return f"{'tcp' if self.certificates is None else 'tls'}://{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class FarmText:
    """`farm://HOST:PORT?key=KEY`: the devices with one key. slots: jobs in flight at a time; 0: two per device, and those that wait for a canary. canary: after
    this many jobs, a device runs a program of known cost; 0: never."""

    text: str
    place: SchedulerAddress
    key: str
    slots: int = 0
    canary: int = 1


def read_place(text: str, certificates: str = "") -> SchedulerAddress:
    """Parse HOST, HOST:PORT or [HOST]:PORT. The certificates come from the given folder, or from `settings.farm_certificates()` if that has some. Raises
    DeviceError for any other text, and for a farm on another machine without certificates."""
    host, port = _host_and_port(text)
    folder = Path(certificates).expanduser() if certificates else settings.farm_certificates()
    if certificates or (folder / f"{AUTHORITY}.pem").exists():
        return SchedulerAddress(host, port, folder)
    if not is_loopback(host):
        raise DeviceError(
            f"asked for a farm at {text}, on another machine, without certificates: `ansor farm init` creates them in {folder}; each machine needs a copy of "
            f"that folder without {AUTHORITY}.key"
        )
    return SchedulerAddress(host, port, None)


def read_farm(text: str) -> FarmText:
    """Parse the text of devices. Raises DeviceError for any other text."""
    rest = text.removeprefix("farm:").removeprefix("//")
    where, _, query = rest.partition("?")
    given = parse_qs(query, keep_blank_values=True)
    unknown = [name for name in given if name not in _OPTIONS]
    if unknown or any(len(values) > 1 for values in given.values()):
        wrong = unknown[0] if unknown else "an option"
        raise DeviceError(f"asked for devices {text!r:.120}: {wrong} is unknown or given twice; the options are {', '.join(_OPTIONS)}")
    if not given.get("key", [""])[0]:
        raise DeviceError(f"asked for devices {text!r:.120}: name a key, as in farm://HOST:PORT?key=KEY; `ansor farm status HOST:PORT` lists the keys")
    place = read_place(where, given.get("certificates", [""])[0])
    return FarmText(text, place, read_key(given["key"][0]), _number(text, given, "slots", 0), _number(text, given, "canary", 1))


def read_key(text: str) -> str:
    """Return the key unchanged. Raises DeviceError if the text is not a valid key."""
    if not re.fullmatch(KEY, text):
        raise DeviceError(f"asked for devices with the key {text!r:.120}; a key is letters, digits, '_', '.' and '-', such as rk3399")
    return text


def check_dashboard(text: str) -> None:
    """Raise DeviceError unless the text is '' (no dashboard) or a loopback address with a port."""
    if not text:
        return
    try:
        host = _host_and_port(text)[0] if ":" in text else ""
    except DeviceError:
        host = ""
    if not host:
        raise DeviceError(f"asked for the dashboard at {text!r:.120}; give HOST:PORT, such as 127.0.0.1:{PORT + 1}")
    if not is_loopback(host):
        raise DeviceError(f"asked for the dashboard at {text}: it has no authentication; keep it on 127.0.0.1, and reach it through ssh -L")


def bracketed(host: str) -> str:
    """The host as written in front of a port: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def loopback_of(host: str) -> str:
    """The numeric form of a loopback address. A worker without certificates listens there; by default, Dask's workers listen on all addresses."""
    return "127.0.0.1" if host == "localhost" else bracketed(host)


def no_answer(place: SchedulerAddress, error: BaseException) -> str:
    """Explain in words why there is no connection, from Dask's error, without the objects that its text prints."""
    cause = error.__cause__ or error
    why = " ".join(clip(re.sub(r"in <[^>]*>: ", "", str(cause)), 300).split()) or type(cause).__name__
    if isinstance(cause, ConnectionRefusedError) or "Connection refused" in why:
        return f"no scheduler answers there ({why}); start one with `ansor farm scheduler`"
    if "WRONG_VERSION" in why or "cannot convert to SSL" in why:  # from ssl or Dask: the peer does not speak TLS
        return f"the scheduler there uses no certificates, but {place.certificates} has some: name a folder without any, or start the scheduler with them"
    if place.certificates is None:
        return f"no scheduler answers there, or it requires certificates, and {settings.farm_certificates()} has none ({why})"
    return f"no scheduler answers there, or it refuses this machine's certificate, from {place.certificates} ({why})"


def security(place: SchedulerAddress) -> Security | None:
    """The certificates as Dask takes them; None for a farm without. Raises DeviceError if files are missing or damaged, or if other users may read a key."""
    from distributed.security import Security

    if place.certificates is None:
        return None
    folder = place.certificates
    files: dict[str, str] = {}
    for role in ROLES:
        if (folder / f"{role}.pem").exists():
            _check_pair(folder, role)
            files |= {f"tls_{role}_cert": str(folder / f"{role}.pem"), f"tls_{role}_key": str(_own_key(folder / f"{role}.key"))}
    authority = folder / f"{AUTHORITY}.pem"
    if not files or not authority.exists():
        lacking = f"{AUTHORITY}.pem is missing" if files else f"{', '.join(f'{role}.pem' for role in ROLES)} are missing"
        raise DeviceError(f"asked for a farm with the certificates in {folder}, where {lacking}; `ansor farm init` creates them")
    _check_authority(authority)
    return Security(tls_ca_file=str(authority), require_encryption=True, tls_min_version=_newest_tls(), **files)


def _check_pair(folder: Path, role: str) -> None:
    import ssl

    certificate, key = folder / f"{role}.pem", _own_key(folder / f"{role}.key")
    try:
        ssl.create_default_context().load_cert_chain(certificate, key, password="")
    except OSError as error:  # includes ssl's errors
        why = error.strerror if not isinstance(error, ssl.SSLError) else "they do not belong together" if "MISMATCH" in str(error) else "they are not PEM"
        raise DeviceError(f"asked for a farm with {certificate} and {key}: {why}; `ansor farm init` creates certificates and keys") from error


def _check_authority(path: Path) -> None:
    import ssl

    try:
        ssl.create_default_context(cafile=str(path))
    except OSError as error:
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise DeviceError(f"asked for a farm with {path}: {why}; `ansor farm init` creates it") from error


def _newest_tls() -> int:
    import ssl

    return int(ssl.TLSVersion.TLSv1_3)


def _own_key(path: Path) -> Path:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise DeviceError(f"asked for a farm with {path}: {error.strerror}; `ansor farm init` creates certificates and keys") from error
    if stat.S_IMODE(mode) & 0o077:
        raise DeviceError(f"asked for a farm with {path}, which gives access to the farm, but other users may read it; run `chmod 600 {path}`")
    return path


def _host_and_port(text: str) -> tuple[str, int]:
    where = text.removeprefix("tls://").removeprefix("tcp://").rstrip("/")
    host, colon, port = where.rpartition(":") if where.count(":") == 1 or "]:" in where else (where, "", "")
    host = (host or "127.0.0.1").strip("[]")
    if re.fullmatch(_HOST, host) and not colon:
        return host, PORT
    if not (re.fullmatch(_HOST, host) and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise DeviceError(f"asked for a farm at {text!r:.120}; give HOST:PORT, such as 10.0.0.7:{PORT}")
    return host, int(port)


def _number(text: str, given: dict[str, list[str]], name: str, default: int) -> int:
    word = given.get(name, [str(default)])[0]
    if not (word.isascii() and word.isdigit() and int(word) <= 4096):
        raise DeviceError(f"asked for devices {text!r:.120}: {name} is {word!r}; give a whole number up to 4096")
    return int(word)
