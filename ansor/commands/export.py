"""`ansor compile NETWORK --export DIR`."""

from __future__ import annotations

import argparse
import time

from rich.console import Console

from ansor import api
from ansor.commands.common import check_folder, doing, made, records_of
from ansor.commands.subject import NetworkSubject, resolve
from ansor.errors import ArgumentError, RecordError
from ansor.networks.instruction_sets import DEFAULT, FALLBACK, instruction_sets
from ansor.run.progress import ProgressView
from ansor.support.text import format_seconds


def run_export(given: argparse.Namespace, console: Console) -> int:
    """Write a network as C for several instruction sets, with recorded programs, and programs that the model picks."""
    if given.target:
        raise ArgumentError(f"asked to export {given.subject} for {given.target}; name instruction sets with --isas, and leave --target out")
    isas = instruction_sets(given.isas.split(",") if given.isas else DEFAULT)  # reports errors before the file runs
    with doing(console, f"reading {given.subject}"):
        subject = resolve(given.subject, given.args)
    if not isinstance(subject, NetworkSubject):
        raise ArgumentError(f"asked to export {given.subject}, which is an operator; --export is for networks, --output saves an operator")
    check_folder(given.export, "--export")
    records = records_of(given, subject)
    if given.records and not records.exists():
        raise RecordError(f"asked to export with the records in {records}, which does not exist; leave --records out")
    with doing(console, f"making the model of {subject.name}"):
        model, inputs = made(subject)
    start, kept = time.monotonic(), records if records.exists() else None
    asked = api.ExportKeywords(threads=given.threads or 1, records=kept, cost_model=given.model, progress=ProgressView(console))
    asked["isas"] = [one.name for one in isas if one != FALLBACK]
    folder = api.export(model, inputs, given.export, **asked)
    console.print(f"exported to {folder} in {format_seconds(time.monotonic() - start)}; build it with cmake; {folder / 'network.h'} declares its functions")
    return 0
