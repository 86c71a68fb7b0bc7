"""Sketch rules by name, so that a target can list its rules as data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import TypeVar

from ansor.errors import ScheduleError
from ansor.rules.base import SketchRule
from ansor.support.text import did_you_mean

GROUP = "ansor.rules"
BUILTIN = (
    "always_inline",
    "simplify_const_tensor",
    "add_rfactor",
    "pack_constants",
    "tile_with_split",
    "add_cache_write",
    "pack_operands",
    "reduce_in_vectors",
    "tensorize",
    "multi_level_tiling_with_fusion",
    "multi_level_tiling",
    "scratchpad_tiling",
    "skip_stage",
)

_rules: dict[str, SketchRule] = {}
Rule = TypeVar("Rule", bound=Callable[[], SketchRule])


def register(name: str) -> Callable[[Rule], Rule]:
    """Register a rule under `name`; the class is called without arguments. Raises ScheduleError when the name is taken."""

    if not isinstance(name, str):
        raise ScheduleError(f"asked to register rule {name!r:.80} without a name; write @register(\"name\") above its class")

    def enter(rule: Rule) -> Rule:
        if name in _rules or (name in BUILTIN and rule.__module__ != f"ansor.rules.{name}"):
            raise ScheduleError(f"asked to register rule {name!r}, which exists already; choose another name")
        _rules[name] = _checked(rule())
        return rule

    return enter


def rule_named(text: str) -> SketchRule:
    """The rule called `name`: registered, built in, or from another package (entry point group `ansor.rules`).

    The name may be followed by knobs in Python syntax: `pack_operands(reuse=4)`. Raises ScheduleError for an unknown rule or knob.
    """
    name, opening, _ = text.partition("(")
    rule = _plain(name)
    return _with_knobs(rule, name, text) if opening else rule


def _with_knobs(rule: SketchRule, name: str, text: str) -> SketchRule:
    knobs = _knobs(text)
    known: list[str] = [one.name for one in fields(rule)] if is_dataclass(rule) else []
    for knob in knobs:
        if knob not in known:
            raise ScheduleError(f"asked for sketch rule {text}, but {name} has no knob {knob!r}; it has {', '.join(known) or 'none'}")
    made: SketchRule = replace(rule, **knobs)  # type: ignore[type-var]  # what has fields is a dataclass
    return made


def _knobs(text: str) -> dict[str, object]:
    """The arguments of a call, which must all be keyword literals."""
    try:
        call = ast.parse(text, mode="eval").body
        if isinstance(call, ast.Call) and not call.args and all(one.arg for one in call.keywords):
            return {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError):
        pass
    raise ScheduleError(f"asked for sketch rule {text!r:.200}, which cannot be read; write a name, or a name with knobs such as pack_operands(reuse=4)")


def _plain(name: str) -> SketchRule:
    if name not in _rules and name in BUILTIN:
        import_module(f"ansor.rules.{name}")
    if name not in _rules:
        _ask_packages(name)
    if name not in _rules:
        hint = did_you_mean(name, {*BUILTIN, *_rules})
        raise ScheduleError(f"asked for sketch rule {name!r}{hint}; the rules are {', '.join(sorted({*BUILTIN, *_rules}))}; register yours first")
    return _rules[name]


def _ask_packages(name: str) -> None:
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        if point.name == name:
            register(name)(point.load())


def resolve(rules: Iterable[str | SketchRule]) -> tuple[SketchRule, ...]:
    """Turn names into rules; keep rules that are given as values. Raises ScheduleError for anything else."""
    return tuple(_rule(rule) for rule in rules)


def _rule(rule: str | SketchRule) -> SketchRule:
    if isinstance(rule, str):
        return rule_named(rule)
    if isinstance(rule, type) and hasattr(rule, "derive"):
        raise ScheduleError(f"asked for the sketch rule {rule.__name__}, which is a class; give a value of it: {rule.__name__}()")
    return _checked(rule)


def _checked(rule: SketchRule) -> SketchRule:
    if not hasattr(rule, "derive"):
        raise ScheduleError(f"asked for the sketch rule {rule!r}, which is not a rule; give the name of one, or a SketchRule")
    if not hasattr(rule, "exclusive"):
        raise ScheduleError(
            f"the sketch rule {type(rule).__name__} has no attribute 'exclusive'; add `exclusive: bool = False`, or True if later rules are not to be tried "
            "where it applies"
        )
    return rule


def name_of(rule: str | SketchRule) -> str:
    """The registered name of a rule, with the knobs that differ from those registered; the name of its class for a rule that is not registered."""
    if isinstance(rule, str):
        return rule
    name, known = next(((name, one) for name, one in _rules.items() if type(one) is type(rule)), (type(rule).__name__, rule))
    if not is_dataclass(rule):
        return name
    pairs = [(one.name, getattr(rule, one.name), getattr(known, one.name)) for one in fields(rule)]
    knobs = ", ".join(f"{knob}={value!r}" for knob, value, registered in pairs if value != registered)
    return f"{name}({knobs})" if knobs else name
