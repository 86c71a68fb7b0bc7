"""`ansor convert`."""

from __future__ import annotations

import argparse
import inspect

from ansor import api
from ansor.commands.as_json import say_json
from ansor.commands.common import made, make_console
from ansor.commands.subject import NetworkSubject, OperatorSubject, Subject, resolve
from ansor.compat.auto_scheduler import record as states
from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.workload_key import WorkloadKey, parse_workload_key
from ansor.compat.auto_scheduler.workload_registry import make_workload_key, register_workload_tensors
from ansor.compat.conversion import convert
from ansor.compat.log_kinds import LogKind, kind_of_file
from ansor.errors import ArgumentError, DeclarationError, RecordError
from ansor.measure.record import load
from ansor.support.text import counted, listed
from ansor.tasks.workloads import WorkloadFunction, register_workload, workload_name
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import OPERATORS

Workloads = dict[str, tuple[Tensor, ...]]


def run_convert(given: argparse.Namespace) -> int:
    """Write the records of a file in another format, and print what was left out. Returns 1 if nothing was written."""
    console = make_console()
    subject = resolve(given.subject, given.args) if given.subject else None
    workloads = _network(subject) if isinstance(subject, NetworkSubject) else _operators(subject)
    if given.args:
        _check_sizes(given, subject, workloads)
    found = convert(given.input, given.output, LogKind(given.to) if given.to else None, workloads=workloads, here=given.here)
    if given.json:
        say_json(console, {"output": given.output, "from": found.source, "to": found.to, "written": found.written, "left_out": found.left_out})
        return 0 if found.written else 1
    for one in found.left_out:
        console.print(str(one), soft_wrap=True, markup=False)
    console.print(f"{given.output}: {counted(found.written, 'record')} ({found.source} to {found.to})", soft_wrap=True, markup=False)
    return 0 if found.written else 1


def _check_sizes(given: argparse.Namespace, subject: Subject | None, workloads: Workloads) -> None:
    """Raise ArgumentError or RecordError for `--args` that mean nothing for the file, or that none of its records has."""
    what, kind = f"asked to convert {given.input} with --args {','.join(map(str, given.args))}", kind_of_file(given.input)
    if kind == LogKind.AUTOTVM:
        raise ArgumentError(f"{what}, but the lines of a log of AutoTVM have their own arguments; leave --args out")
    if not isinstance(subject, OperatorSubject):
        raise ArgumentError(f"{what}, but without the operator that takes them; name it: NAME, or FILE.py[:function]")
    ((ours, tensors),) = workloads.items()
    there = _sizes_in_log(given.input, parse_workload_key(ours).name, subject.function) if kind == LogKind.AUTO_SCHEDULER else _workloads_in(given.input)
    key = ours if kind == LogKind.AUTO_SCHEDULER else ComputeDAG(tensors).dag.key
    if there and key not in there:
        found = listed([one or "other workloads" for one in dict.fromkeys(there.values())])
        raise RecordError(f"{what}, but it has no record of {subject.title}; it has {found}: give the sizes of one")


def _sizes_in_log(file: str, name: str, function: WorkloadFunction) -> dict[str, str]:
    """The workloads of one function in a log: keys with the function's defaults, and texts such as `matmul(16, 16, 16)`."""
    keys = [parse_workload_key(record.input.task.recorded.workload_key) for record in states.load(file).records]
    signature, found = inspect.signature(function), {}
    for key in keys:
        if key.name == name:
            bound = signature.bind_partial(*key.args[: len(signature.parameters)])
            bound.apply_defaults()
            found[str(WorkloadKey(name, bound.args))] = f"{name}({', '.join(map(str, key.args))})"
    return found


def _workloads_in(file: str) -> dict[str, str]:
    """The workloads of a record file: keys, and names if it has them."""
    loaded = load(file)
    return {record.workload: loaded.names.get(record.workload, "") for record in loaded.records}


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
    """The groups of a network. Logs name them by the hash of their declarations. Large attention has other groups on several threads than on one."""
    model, inputs = made(subject)
    tasks = [task for target in ("cpu -threads=1", "cpu") for task in api.extract_tasks(model, inputs, target).tasks]
    found: Workloads = {ComputeDAG(task.tensors).workload_key(): task.tensors for task in tasks}
    for key, tensors in found.items():
        register_workload_tensors(key, tensors)
    return found
