"""How to reach a farm: addresses, the text form of its devices, certificates."""

from __future__ import annotations

import ipaddress
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from ansor.errors import DeviceError
from ansor.farm.certificates import AUTHORITY, ROLES
from ansor.support import settings

if TYPE_CHECKING:
    from distributed.security import Security

PORT = 8786
KEY = "[A-Za-z0-9_.-]+"
_OPTIONS = ("key", "certificates", "slots", "canary")


@dataclass(frozen=True, slots=True)
class Place:
    """A scheduler. certificates: the folder that they are in; None for a farm of this machine alone, without any."""

    host: str
    port: int
    certificates: Path | None

    @property
    def url(self) -> str:
        """As Dask writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tcp' if self.certificates is None else 'tls'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class FarmText:
    """`farm://HOST:PORT?key=KEY`: devices of one key. slots: jobs on their way at a time, 0 for two for each device. canary: of so many jobs one is watched
    by a program whose cost is known; 0 for none."""

    text: str
    place: Place
    key: str
    slots: int = 0
    canary: int = 1


def read_place(text: str, certificates: str = "") -> Place:
    """HOST, HOST:PORT or [HOST]:PORT. Certificates are those of the folder, or of `settings.farm_certificates()` where there are some. Raises DeviceError for
    another text, and for a farm beyond this machine without certificates."""
    host, port = _host_and_port(text)
    folder = Path(certificates).expanduser() if certificates else settings.farm_certificates()
    if certificates or (folder / f"{AUTHORITY}.pem").exists():
        return Place(host, port, folder)
    if not is_loopback(host):
        raise DeviceError(
            f"asked for a farm at {text}, on another machine, without certificates: `ansor farm init` creates them in {folder}; each machine needs a copy of "
            f"that folder without {AUTHORITY}.key"
        )
    return Place(host, port, None)


def read_farm(text: str) -> FarmText:
    """The text of devices. Raises DeviceError for what is none."""
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
    return FarmText(text, place, given["key"][0], _number(text, given, "slots", 0), _number(text, given, "canary", 1))


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def loopback_of(host: str) -> str:
    """The number of a loopback address: what a worker without certificates listens on. Dask's would listen on all addresses of the machine."""
    return "127.0.0.1" if host == "localhost" else host


def security(place: Place) -> Security | None:
    """What Dask needs to know of certificates; None for a farm without. Raises DeviceError where files are missing, or others may read keys."""
    from distributed.security import Security

    if place.certificates is None:
        return None
    folder = place.certificates
    files: dict[str, str] = {}
    for role in ROLES:
        if (folder / f"{role}.pem").exists():
            files |= {f"tls_{role}_cert": str(folder / f"{role}.pem"), f"tls_{role}_key": str(_own_key(folder / f"{role}.key"))}
    authority = folder / f"{AUTHORITY}.pem"
    if not files or not authority.exists():
        lacking = f"{AUTHORITY}.pem" if files else "those of all roles"
        raise DeviceError(f"asked for a farm with the certificates in {folder}, where {lacking} is missing; `ansor farm init` creates them")
    return Security(tls_ca_file=str(authority), require_encryption=True, tls_min_version=_newest_tls(), **files)


def _newest_tls() -> int:
    import ssl

    return int(ssl.TLSVersion.TLSv1_3)


def _own_key(path: Path) -> Path:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise DeviceError(f"asked for a farm with {path}: {error.strerror}; `ansor farm init` creates certificates and keys") from error
    if stat.S_IMODE(mode) & 0o077:
        raise DeviceError(f"other users may read {path}, which gives access to the farm: `chmod 600 {path}`")
    return path


def _host_and_port(text: str) -> tuple[str, int]:
    where = text.removeprefix("tls://").removeprefix("tcp://").rstrip("/")
    host, colon, port = where.rpartition(":") if where.count(":") == 1 or "]:" in where else (where, "", "")
    host = (host or "127.0.0.1").strip("[]")
    if not colon:
        return host, PORT
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise DeviceError(f"asked for a farm at {text!r:.120}; give HOST:PORT, such as 10.0.0.7:{PORT}")
    return host, int(port)


def _number(text: str, given: dict[str, list[str]], name: str, default: int) -> int:
    word = given.get(name, [str(default)])[0]
    if not (word.isascii() and word.isdigit() and int(word) <= 4096):
        raise DeviceError(f"asked for devices {text!r:.120}: {name} is {word!r}; give a whole number up to 4096")
    return int(word)
