"""Sketch rules, one file each. `register` makes a rule known by name."""

from ansor.rules.registry import register as register
