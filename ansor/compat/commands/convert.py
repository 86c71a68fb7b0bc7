"""`ansor convert`."""

from __future__ import annotations

import argparse
import inspect

from ansor import api
from ansor.commands.as_json import say_json
from ansor.commands.common import made, make_console
from ansor.commands.subject import NetworkSubject, OperatorSubject, Subject, resolve
from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.workload_registry import make_workload_key, register_workload_tensors
from ansor.compat.conversion import convert
from ansor.compat.log_kinds import LogKind
from ansor.errors import DeclarationError
from ansor.support.text import counted
from ansor.tasks.workloads import WorkloadFunction, register_workload, workload_name
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import OPERATORS

Workloads = dict[str, tuple[Tensor, ...]]


def run_convert(given: argparse.Namespace) -> int:
    """Write the records of a file in another format, and print what was left out. Returns 1 if nothing was written."""
    console = make_console()
    subject = resolve(given.subject, given.args) if given.subject else None
    workloads = _network(subject) if isinstance(subject, NetworkSubject) else _operators(subject)
    found = convert(given.input, given.output, LogKind(given.to) if given.to else None, workloads=workloads, here=given.here)
    if given.json:
        say_json(console, {"output": given.output, "from": found.source, "to": found.to, "written": found.written, "left_out": found.left_out})
        return 0 if found.written else 1
    for one in found.left_out:
        console.print(str(one), soft_wrap=True, markup=False)
    console.print(f"{given.output}: {counted(found.written, 'record')} ({found.source} to {found.to})", soft_wrap=True, markup=False)
    return 0 if found.written else 1


def _operators(subject: Subject | None) -> Workloads:
    """The operator that was named, or the built-in ones. Logs name them by their functions, whatever the sizes."""
    subjects = [subject] if isinstance(subject, OperatorSubject) else [OperatorSubject(one.name, one.function, one.args) for one in OPERATORS.values()]
    found = {}
    for each in subjects:
        function = inspect.unwrap(each.function, stop=lambda one: hasattr(one, "template_name"))
        if hasattr(function, "template_name"):
            raise DeclarationError(f"asked to convert records of {each.name}, a template, whose programs other formats cannot hold; name a declaration")
        name = workload_name(function) or _registered(each.name, function)
        found[make_workload_key(name, each.args)] = tuple(each.function(*each.args))
    return found


def _registered(name: str, function: WorkloadFunction) -> str:
    register_workload(name, override=True)(function)
    return name


def _network(subject: NetworkSubject) -> Workloads:
    """The groups of a network. Logs name them by the hash of their declarations."""
    tasks, _ = api.extract_tasks(*made(subject))
    found: Workloads = {ComputeDAG(task.tensors).workload_key(): task.tensors for task in tasks}
    for key, tensors in found.items():
        register_workload_tensors(key, tensors)
    return found
