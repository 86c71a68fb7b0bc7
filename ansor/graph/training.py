"""Finds modules in training mode that behave differently in it."""

from __future__ import annotations

import types

import torch


def acting_on_mode(module: torch.nn.Module) -> list[str]:
    """The classes of modules, each once, that are in training mode here and read `training` in their code, such as Dropout and BatchNorm2d."""
    return list(dict.fromkeys(type(part).__name__ for part in module.modules() if part.training and _reads_mode(type(part))))


def _reads_mode(kind: type[torch.nn.Module]) -> bool:
    classes = [one for one in kind.__mro__ if issubclass(one, torch.nn.Module) and one is not torch.nn.Module]
    functions = [one for cls in classes for one in vars(cls).values() if isinstance(one, types.FunctionType)]
    return any("training" in function.__code__.co_names for function in functions)
