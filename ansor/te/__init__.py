"""The declaration language. `from ansor import te` provides every name a declaration needs. `te.nn` is imported when first used."""

from typing import TYPE_CHECKING

from ansor.te.declaration import compute as compute
from ansor.te.expr import Axis as Axis
from ansor.te.expr import Expr as Expr
from ansor.te.expr import cast as cast
from ansor.te.expr import const as const
from ansor.te.reducers import comm_reducer as comm_reducer
from ansor.te.scalar import abs as abs
from ansor.te.scalar import acos as acos
from ansor.te.scalar import acosh as acosh
from ansor.te.scalar import all as all
from ansor.te.scalar import any as any
from ansor.te.scalar import asin as asin
from ansor.te.scalar import asinh as asinh
from ansor.te.scalar import atan as atan
from ansor.te.scalar import atan2 as atan2
from ansor.te.scalar import atanh as atanh
from ansor.te.scalar import ceil as ceil
from ansor.te.scalar import clz as clz
from ansor.te.scalar import copysign as copysign
from ansor.te.scalar import cos as cos
from ansor.te.scalar import cosh as cosh
from ansor.te.scalar import div as div
from ansor.te.scalar import erf as erf
from ansor.te.scalar import exp as exp
from ansor.te.scalar import exp2 as exp2
from ansor.te.scalar import exp10 as exp10
from ansor.te.scalar import floor as floor
from ansor.te.scalar import floordiv as floordiv
from ansor.te.scalar import floormod as floormod
from ansor.te.scalar import fmod as fmod
from ansor.te.scalar import hypot as hypot
from ansor.te.scalar import if_then_else as if_then_else
from ansor.te.scalar import indexdiv as indexdiv
from ansor.te.scalar import indexmod as indexmod
from ansor.te.scalar import infinity as infinity
from ansor.te.scalar import isfinite as isfinite
from ansor.te.scalar import isinf as isinf
from ansor.te.scalar import isnan as isnan
from ansor.te.scalar import ldexp as ldexp
from ansor.te.scalar import log as log
from ansor.te.scalar import log1p as log1p
from ansor.te.scalar import log2 as log2
from ansor.te.scalar import log10 as log10
from ansor.te.scalar import logical_not as logical_not
from ansor.te.scalar import max as max
from ansor.te.scalar import max_value as max_value
from ansor.te.scalar import maximum as maximum
from ansor.te.scalar import min as min
from ansor.te.scalar import min_value as min_value
from ansor.te.scalar import minimum as minimum
from ansor.te.scalar import nearbyint as nearbyint
from ansor.te.scalar import nextafter as nextafter
from ansor.te.scalar import popcount as popcount
from ansor.te.scalar import power as power
from ansor.te.scalar import prod as prod
from ansor.te.scalar import round as round
from ansor.te.scalar import round_half_away as round_half_away
from ansor.te.scalar import rsqrt as rsqrt
from ansor.te.scalar import select as select
from ansor.te.scalar import sigmoid as sigmoid
from ansor.te.scalar import sin as sin
from ansor.te.scalar import sinh as sinh
from ansor.te.scalar import sqrt as sqrt
from ansor.te.scalar import sum as sum
from ansor.te.scalar import tan as tan
from ansor.te.scalar import tanh as tanh
from ansor.te.scalar import trunc as trunc
from ansor.te.scalar import truncdiv as truncdiv
from ansor.te.scalar import truncmod as truncmod
from ansor.te.tensor import Tensor as Tensor
from ansor.te.tensor import placeholder as placeholder
from ansor.te.tensor import reduce_axis as reduce_axis

if TYPE_CHECKING:
    from ansor.te import nn as nn


def __getattr__(name: str) -> object:
    if name != "nn":
        moved = f"; schedules by hand are ansor.{name}" if name in ("create_schedule", "lower", "build") else ""
        raise AttributeError(f"module 'ansor.te' has no attribute {name!r}{moved}")
    from importlib import import_module

    return import_module("ansor.te.nn")
