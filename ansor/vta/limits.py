"""Checks the limits on programs for a core, for many programs at once."""

from __future__ import annotations

from ansor.ir.columns import Flag
from ansor.ir.loops import Loops
from ansor.schedule.machine import Limit, Machine
from ansor.vta.configuration import Configuration, Memory
from ansor.vta.work import Work, instructions, micro_ops, work_on_core

MOST_INSTRUCTIONS = 1 << 14
"""The most instructions of an operator; a longer program spends most of its time on instruction overhead."""

NAMES = ("on the core", "elements", "micro-ops", "instructions", "padding")


def limits_of(configuration: Configuration) -> tuple[Limit, ...]:
    """The limits on programs for a core of this configuration."""
    return tuple(Limit(name, _CoreLimit(name, configuration)) for name in NAMES)


class _CoreLimit:
    def __init__(self, name: str, configuration: Configuration) -> None:
        self._name, self._configuration = name, configuration

    def __call__(self, loops: Loops, machine: Machine) -> Flag:
        del machine
        work = work_on_core(loops, self._configuration)
        if work is None:
            return self._name != "on the core"
        tests = {"elements": self._elements, "micro-ops": self._micro_ops, "instructions": _instructions, "padding": _padding}
        return tests.get(self._name, _on_core)(work)

    def _elements(self, work: Work) -> Flag:
        result: Flag = True
        for memory, held in work.held.items():
            result = result & (held <= self._configuration.depth(memory))
        return result

    def _micro_ops(self, work: Work) -> Flag:
        return micro_ops(work) <= self._configuration.depth(Memory.UOP)


def _on_core(work: Work) -> Flag:
    del work
    return True


def _instructions(work: Work) -> Flag:
    return instructions(work) <= MOST_INSTRUCTIONS


def _padding(work: Work) -> Flag:
    return work.movable
