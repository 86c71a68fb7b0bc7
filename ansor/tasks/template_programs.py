"""The programs of templates that a task searches alongside those of the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.targets.base import Target
from ansor.tasks.sketch_space import SketchSpace
from ansor.te.tensor import Tensor
from ansor.templates.label import template_label
from ansor.templates.sketches import template_sketches
from ansor.templates.task import Task, collect
from ansor.templates.template import deserialize_args, serialize_args

Template: TypeAlias = "str | Callable[..., object] | Task"
"""The name of a template, the function that was registered, or a task of it."""


def tasks_of(templates: Sequence[Template], args: Sequence[object]) -> tuple[tuple[Task, ...], tuple[Tensor, ...]]:
    """Each template with its space, once, and the inputs and outputs of the first. Templates without their own arguments get `args`.

    Raises ConfigError for a name that is not registered, and DeclarationError for a function that is not a template or arguments that do not fit.
    """
    called = list(dict.fromkeys((name, serialize_args(given)) for name, given in (_called(one, args) for one in templates)))
    found = [collect(name, deserialize_args(given)) for name, given in called]
    return tuple(task for task, _ in found), tuple(found[0][1][1])


def spaces_of(templates: Sequence[Task], dag: Dag, target: Target) -> list[SketchSpace]:
    """The sketches of templates, to be searched along with those of the declaration `dag`."""
    return [SketchSpace(sketch, target, template_label(task.name)) for task in templates for sketch in template_sketches(task, dag)]


def _called(template: Template, args: Sequence[object]) -> tuple[str, Sequence[object]]:
    if isinstance(template, Task):
        return template.name, template.args
    name = template if isinstance(template, str) else getattr(template, "template_name", None)
    if name is None:
        raise DeclarationError(f"asked for the template {template!r}, which is not a template; decorate it with @autotvm.template(name), or give a name")
    return name, args
