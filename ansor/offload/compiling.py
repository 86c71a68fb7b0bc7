"""Compiles operators of a network to programs for a core, which are tuned, taken from records, or picked by the estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ansor.errors import ScheduleError
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Add, AveragePool, Convolution, Dense, Table
from ansor.integer.operators import Operator as IntegerOperator
from ansor.offload.annotation import Names
from ansor.offload.forms import Form, OperatorInput, form_of
from ansor.run.choosing import chosen, recorded_states
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter
from ansor.run.session import tune_states
from ansor.run.states import TaskState
from ansor.support.text import counted
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask
from ansor.vta.compiled import Operator, finish, linked, operator_from_text
from ansor.vta.cycles import CHISEL, CycleModel, count_cycles
from ansor.vta.toolchain import is_operator


@dataclass(frozen=True, eq=False)
class Compiled:
    """An operator of the network on the core; program: None if its result is only another name of its input."""

    form: Form
    program: Operator | None

    def cycles(self, model: CycleModel = CHISEL) -> int:
        """The cycles of this operator alone, with its micro-ops already loaded."""
        if self.program is None:
            return 0
        words = np.concatenate([linked(self.program, [0] * len(self.program.tensors)), finish(self.program.configuration)])
        return count_cycles(words, self.program.configuration, model).total


def forms_of(network: IntegerNetwork, wanted: Names) -> tuple[dict[str, Form], dict[str, str]]:
    """Those of the wanted operators that a core can compute, and for each of the others the reason why it cannot."""
    least = least_of(network)
    forms, refused = dict[str, Form](), dict[str, str]()
    for one in network.operators:
        if one.output in wanted:
            found = form_of(one, [OperatorInput(network.tensors[name].shape, least[name]) for name in one.inputs])
            if isinstance(found, str):
                refused[one.output] = found
            else:
                forms[one.output] = found
    return forms, refused


def compiled(forms: Mapping[str, Form], target: Target, asked: RunOptions, reporter: Reporter) -> tuple[dict[str, Compiled], dict[str, str]]:
    """The programs, and the reason for each operator without one. Operators that differ only in their constants share a task."""
    tasks = {name: SearchTask(tensors=form.tensors, target=target, name=_name(form)) for name, form in forms.items() if not form.renames}
    uses = Counter(task.workload_key for task in tasks.values())
    states = recorded_states([(task, float(uses[key])) for key, task in {task.workload_key: task for task in tasks.values()}.items()], asked.records)
    tune_states(states, asked, reporter)
    reporter.now(f"choosing programs for {counted(len(states), 'operator')}")
    programs = {key: _program(state, asked) for key, state in states.items()}
    found = {name: Compiled(form, None) for name, form in forms.items() if form.renames}
    refused: dict[str, str] = {}
    for name, task in tasks.items():
        program = programs[task.workload_key]
        if isinstance(program, str):
            refused[name] = program
        else:
            found[name] = Compiled(forms[name], program)
    return found, refused


def _program(state: TaskState, asked: RunOptions) -> Operator | str:
    """The program, or why there is none."""
    try:
        best = chosen(state, asked.search.model, asked.search.seed)
        source = state.task.source(best.sketch, best.row)
    except ScheduleError as error:
        return str(error)
    return operator_from_text(source.text) if is_operator(source) else f"none of its programs fits on {state.task.target}"


def _name(form: Form) -> str:
    result = form.tensors[-1]
    return f"{form.operator.kind}_{'x'.join(map(str, result.shape))}"


def least_of(network: IntegerNetwork) -> dict[str, int]:
    """A lower bound on the numbers in each tensor."""
    found = dict.fromkeys(network.inputs, -128)
    for one in network.operators:
        found[one.output] = _least(one, [found[name] for name in one.inputs])
    return found


def _least(operator: IntegerOperator, inputs: list[int]) -> int:
    if isinstance(operator, Convolution | Dense | AveragePool):
        return operator.rescale.low
    if isinstance(operator, Add):
        return operator.low
    if isinstance(operator, Table):
        return int(operator.values.min())
    return min(inputs)
