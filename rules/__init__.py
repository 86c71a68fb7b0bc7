"""Sketch rules, one file each. `register` adds a rule under a name."""

from ansor.rules.registry import register as register
