"""Targets. `cpu` is known once anything of the package is imported, its other families when they are asked for: `BUILTIN` in `base`; other packages offer
theirs by entry points."""

from ansor.targets import cpu as cpu
