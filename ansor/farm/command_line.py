"""The commands for farms: `ansor farm init|scheduler|worker|status`. Each imports its code when it runs."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from ansor.commands.parsers import Commands, command, rate
from ansor.errors import DeviceError

FARM_HELP = """\
Share the devices of many machines between tuning runs, through one scheduler.

  ansor farm init                                                  certificates, once; copy the folder to each machine
  ansor farm scheduler --listen 10.0.0.7:8786
  ansor farm worker 10.0.0.7:8786 --key rk3399 --device ssh://pi@board       on any machine that reaches the board
  ansor farm status 10.0.0.7:8786
  ansor tune matmul --target 'arm -mcpu=cortex-a72' --devices 'farm://10.0.0.7:8786?key=rk3399'

Anyone who has a certificate of the farm can run programs on all its machines: docs/scale.md says who trusts whom."""


def add(commands: Commands) -> None:
    """Add these commands to those of `ansor`."""
    actions = command(commands, "farm", FARM_HELP).add_subparsers(dest="action", metavar="ACTION", required=True)
    parser = command(actions, "init", "Create the certificates of a farm, valid for two years.")
    parser.set_defaults(run=_init)
    parser.add_argument("folder", nargs="?", default="", metavar="DIR", help="where to write them (default: $ANSOR_FARM, else ~/.config/ansor/farm)")
    parser = command(actions, "scheduler", "Run the scheduler of a farm, until Ctrl-C.")
    parser.set_defaults(run=_scheduler)
    parser.add_argument("--listen", default="127.0.0.1:8786", metavar="HOST:PORT", help="the address to listen on (default %(default)s: this machine only)")
    parser.add_argument("--dashboard", default="127.0.0.1:8787", metavar="HOST:PORT",
                        help="address of Dask's dashboard and metrics, on this machine only (default %(default)s; '' for none)")
    parser.add_argument("--patience", type=_seconds, default=30.0, metavar="SECONDS", help="time until a silent worker counts as gone (default %(default)g)")
    parser.add_argument("--handshake", type=_seconds, default=10.0, metavar="SECONDS",
                        help="time within which a connection has to show a certificate (default %(default)g)")
    _add_certificates(parser)
    parser = command(actions, "worker", "Serve one device of this machine, or one that it can reach, until Ctrl-C.")
    parser.set_defaults(run=_worker)
    parser.add_argument("scheduler", metavar="HOST:PORT", help="where the scheduler listens")
    parser.add_argument("--key", required=True, help="the kind of board that jobs request, such as rk3399")
    parser.add_argument("--device", required=True, metavar="NAME", help="as in --devices of `ansor tune`: local, ssh://pi@board, gdb://localhost:3333")
    parser.add_argument("--supervised", type=int, metavar="PROCESS", help=argparse.SUPPRESS)
    _add_certificates(parser)
    parser = command(actions, "status", "List the devices of a farm, with their state and last error.")
    parser.set_defaults(run=_status)
    parser.add_argument("scheduler", metavar="HOST:PORT", help="where the scheduler listens")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    _add_certificates(parser)


def _add_certificates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--certificates", default="", metavar="DIR", help="the folder of `ansor farm init` (default: $ANSOR_FARM, else ~/.config/ansor/farm)")


def _seconds(text: str) -> float:
    """A time between a second and a day."""
    value = rate(text)
    if not 1 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a time from 1 to 86400 seconds")
    return value


def _init(given: argparse.Namespace) -> int:
    from ansor.farm.certificates import make_certificates
    from ansor.support import settings

    folder = Path(given.folder).expanduser() if given.folder else settings.farm_certificates()
    for path in make_certificates(folder):
        print(path)
    print("copy the folder to each machine of the farm, but keep authority.key off those machines: it can create new members")
    return 0


def _scheduler(given: argparse.Namespace) -> int:
    from ansor.farm.address import read_place
    from ansor.farm.scheduler import serve

    def ready(address: str, dashboard: str) -> None:
        print(f"the scheduler listens at {address}; Ctrl-C ends it", flush=True)
        if dashboard:
            print(f"Dask's dashboard: {dashboard}", flush=True)

    serve(read_place(given.listen, given.certificates), given.dashboard, given.patience, given.handshake, ready)
    return 0


def _worker(given: argparse.Namespace) -> int:
    from ansor.farm.address import read_key, read_place
    from ansor.farm.supervisor import supervise
    from ansor.farm.worker import WorkerSettings, serve
    from ansor.measure.device_kinds import usable_kind

    def say(text: str) -> None:
        print(text, flush=True)

    settings = WorkerSettings(read_place(given.scheduler, given.certificates), read_key(given.key), given.device, given.supervised or 0)
    if usable_kind(given.device).several is not None:  # before it joins and clients see it
        raise DeviceError(f"asked for a worker with the device {given.device}, which stands for several devices; name one device, and start a worker for each")
    if settings.supervisor:
        serve(settings, say)
        return 0
    words = ["-m", "ansor", "farm", "worker", given.scheduler, "--key", given.key, "--device", given.device]
    return supervise([*words, *(["--certificates", given.certificates] if given.certificates else []), "--supervised"], say)


def _status(given: argparse.Namespace) -> int:
    import json

    from ansor.farm.address import read_place
    from ansor.farm.status import farm_status
    from ansor.farm.status_text import status_lines

    found = farm_status(read_place(given.scheduler, given.certificates))
    print(json.dumps(asdict(found)) if given.json else "\n".join(status_lines(found)))
    return 0
