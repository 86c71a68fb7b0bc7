"""Targets. Importing the package registers `cpu`; its other kinds (`BUILTIN` in `base`) are imported on request. Other packages provide
theirs by entry points."""

from ansor.targets import cpu as cpu
