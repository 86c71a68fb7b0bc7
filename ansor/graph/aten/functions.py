"""ATen's scalar functions: tables of those that need only a name, and the few that need code."""

from __future__ import annotations

import numpy as np
import torch

from ansor.graph.aten.elementwise import of_pair, plain
from ansor.graph.aten.translation import AtenCall, Builder, Ref, Translation, Unsupported, translates
from ansor.graph.dtypes import INTEGERS, array_of
from ansor.graph.scalar_functions import OF_FLOAT32, OF_ONE
from ansor.support.bfloat16 import BFLOAT16
from ansor.te.expr import is_float

for _op in (*OF_ONE, "expm1"):
    translates(f"aten.{_op}.default", f"prims.{_op}.default")(plain(_op))


def _single(op: str) -> Translation:
    def translation(call: AtenCall, build: Builder) -> str:
        if call.result.dtype != "float32":
            raise Unsupported(f"it is translated only for float32, not for {call.result.dtype}")
        return build.unary(op, build.cast(call.tensor("self"), "float32"), call.name)

    return translation


_SINGLE = {"erfc": ("aten.erfc", "aten.special_erfc", "prims.erfc"), "erfinv": ("aten.erfinv", "aten.special_erfinv", "prims.erf_inv"),
           "lgamma": ("aten.lgamma", "aten.special_gammaln", "prims.lgamma"), "digamma": ("aten.digamma", "aten.special_digamma", "prims.digamma")}
for _op, _names in _SINGLE.items():
    assert _op in OF_FLOAT32
    translates(*(f"{_name}.default" for _name in _names))(_single(_op))

for _op in ("atan2", "copysign", "hypot"):
    translates(f"aten.{_op}.default" if _op != "copysign" else "aten.copysign.Tensor", f"prims.{_op}.default")(of_pair(_op))


@translates("aten.nextafter.default", "prims.nextafter.default")
def nextafter(call: AtenCall, build: Builder) -> str:
    if call.result.dtype == BFLOAT16:
        raise Unsupported("kernels compute the next float32 number, not the next bfloat16 number")
    return of_pair("nextafter")(call, build)  # type: ignore[return-value]  # `of_pair` returns one name


def _rest(op: str) -> Translation:
    """For floats, and for integers and a number above 0: an integer division by zero would end the process."""
    rule = of_pair(op)

    def translation(call: AtenCall, build: Builder) -> str:
        if not _is_integer_division(call):
            _float_result(call)
        return str(rule(call, build))

    return translation


for _op in ("fmod", "remainder"):
    translates(f"aten.{_op}.Tensor", f"aten.{_op}.Scalar", f"prims.{_op}.default")(_rest(_op))


def _is_integer_division(call: AtenCall) -> bool:
    """Whether integers are divided by a number above 0 that their dtype has. Division by -1 could overflow, and PyTorch wraps larger numbers around."""
    divisor, dtype = call.arguments["other"], call.result.dtype
    return dtype in INTEGERS and isinstance(divisor, int) and not isinstance(divisor, bool) and 0 < divisor <= np.iinfo(dtype).max


translates("aten.copysign.Scalar")(of_pair("copysign"))

for _op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    translates(f"prims.{_op}.default")(of_pair(_op))
translates("aten.bitwise_xor.Tensor")(of_pair("bitwise_xor"))


@translates("aten.sign.default", "aten.sgn.default", "prims.sign.default")
def sign(call: AtenCall, build: Builder) -> str:
    if call.result.dtype == "bool":
        return call.tensor("self")
    return build.unary("sign", call.tensor("self"), call.name)


@translates("aten.isnan.default")
def isnan(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    return build.binary("ne", source, source, call.name, dtype="bool")


@translates("aten.isinf.default")
def isinf(call: AtenCall, build: Builder) -> str:
    _float_operand(call, build)
    return build.binary("eq", build.unary("abs", call.tensor("self")), float("inf"), call.name, dtype="bool")


@translates("aten.isposinf.default", "aten.isneginf.default")
def is_signed_infinity(call: AtenCall, build: Builder) -> str:
    _float_operand(call, build)
    return build.binary("eq", call.tensor("self"), float("inf" if "pos" in call.operator else "-inf"), call.name, dtype="bool")


@translates("aten.isfinite.default", "prims.isfinite.default")
def isfinite(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    return build.add("isfinite", [source], build.shape(source), "bool", call.name)


@translates("aten.signbit.default", "prims.signbit.default")
def signbit(call: AtenCall, build: Builder) -> str:
    """For floats, test whether 1 with the sign of x is below zero: that includes negative zeros."""
    source, dtype = call.tensor("self"), build.dtype(call.tensor("self"))
    if is_float(dtype):
        source = build.binary("copysign", source, 1.0, reverse=True)
    return build.binary("lt", source, 0.0 if is_float(dtype) else 0, call.name, dtype="bool")


def _float_operand(call: AtenCall, build: Builder) -> None:
    if not is_float(build.dtype(call.tensor("self"))):
        raise Unsupported(f"it is translated only for floats, not for {build.dtype(call.tensor('self'))}")


@translates("aten.pow.Tensor_Tensor", "prims.pow.default")
def power(call: AtenCall, build: Builder) -> str:
    key = "exponent" if "exponent" in call.arguments else "other"
    return _power(call, build, call.tensor("self"), call.tensor(key))


@translates("aten.pow.Scalar")
def power_of_number(call: AtenCall, build: Builder) -> str:
    dtype = _float_result(call)
    return build.binary("pow", build.cast(call.tensor("exponent"), dtype), float(call.number("self")), call.name, reverse=True)


def _power(call: AtenCall, build: Builder, base: str, exponent: str) -> str:
    dtype = _float_result(call)
    return build.binary("pow", build.cast(base, dtype), build.cast(exponent, dtype), call.name)


def _float_result(call: AtenCall) -> str:
    if not is_float(call.result.dtype):
        raise Unsupported(f"it is translated only for float results, not for {call.result.dtype}")
    return call.result.dtype


@translates("aten.floor_divide.default", "aten.floor_divide.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def rounded_quotient(call: AtenCall, build: Builder) -> str:
    """The quotient as PyTorch rounds it: subtract the remainder, divide exactly, and round to the nearest integer."""
    mode = call.arguments.get("rounding_mode", "floor")
    if mode is not None and _is_integer_division(call):
        return _integer_quotient(call, build, floor=mode == "floor")
    dtype = _float_result(call)
    left, given = build.cast(call.tensor("self"), dtype), call.arguments["other"]
    right = build.cast(given, dtype) if isinstance(given, Ref) else build.number(given, dtype)
    if mode != "floor":
        quotient = build.binary("div", left, right, call.name)
        return build.unary("trunc", quotient, call.name) if mode == "trunc" else quotient
    rest = build.binary("fmod", left, right)
    exact = build.binary("div", build.binary("sub", left, rest), right)
    shape = build.shape(exact)
    signs = build.binary("ne", build.binary("lt", rest, 0.0, dtype="bool"), build.binary("lt", right, 0.0, dtype="bool"), dtype="bool")
    behind = build.binary("logical_and", build.binary("ne", rest, 0.0, dtype="bool"), signs, dtype="bool")
    exact = build.add("where", [behind, build.binary("sub", exact, 1.0), exact], shape, dtype)
    by_zero = build.binary("eq", right, 0.0, dtype="bool")
    return build.add("where", [by_zero, build.binary("div", left, right), build.unary("round", exact)], shape, dtype, call.name)


def _integer_quotient(call: AtenCall, build: Builder, *, floor: bool) -> str:
    dividend, divisor = build.cast(call.tensor("self"), call.result.dtype), call.integer("other")
    if not floor:
        dividend = build.binary("sub", dividend, build.binary("fmod", dividend, divisor))
    return build.binary("floor_divide", dividend, divisor, call.name)


@translates("aten.logical_xor.default")
def logical_xor(call: AtenCall, build: Builder) -> str:
    return build.binary("logical_xor", build.cast(call.tensor("self"), "bool"), build.cast(call.tensor("other"), "bool"), call.name)


@translates("aten.fmax.default", "aten.fmin.default", "prims.fmax.default", "prims.fmin.default")
def extreme_beside_nan(call: AtenCall, build: Builder) -> str:
    """The extreme of two operands; where one is NaN, the other operand."""
    dtype = call.result.dtype
    left, right = build.cast(call.tensor("self"), dtype), build.cast(call.tensor("other"), dtype)
    chosen = build.binary("maximum" if "fmax" in call.operator else "minimum", left, right)
    shape = build.shape(chosen)
    for one, other in ((left, right), (right, left)):
        missing = build.binary("ne", one, one, dtype="bool")
        chosen = build.add("where", [missing, other, chosen], shape, dtype, call.name)
    return chosen


@translates("aten.addcmul.default", "aten.addcdiv.default")
def add_product(call: AtenCall, build: Builder) -> str:
    dtype = call.result.dtype
    first, one, two = (build.cast(call.tensor(key), dtype) for key in ("self", "tensor1", "tensor2"))
    product = build.binary("mul" if "mul" in call.operator else "div", one, two)
    value = call.number("value")
    if value != 1:
        product = build.binary("mul", product, float(value) if is_float(dtype) else value)
    return build.binary("add", first, product, call.name)


@translates("aten.masked_fill.Tensor")
def masked_fill(call: AtenCall, build: Builder) -> str:
    source, value = call.tensor("self"), build.cast(call.tensor("value"), call.result.dtype)
    return build.add("where", [call.tensor("mask"), value, source], call.result.shape, call.result.dtype, call.name)


@translates("prims.where.default")
def where(call: AtenCall, build: Builder) -> str:
    given = [call.arguments[key] for key in ("a", "b")]
    tensors = [build.cast(one, call.result.dtype) if isinstance(one, Ref) else build.number(one, call.result.dtype) for one in given]
    return build.add("where", [call.tensor("pred"), *tensors], call.result.shape, call.result.dtype, call.name)


@translates("aten.clamp.Tensor", "aten.clamp_min.Tensor", "aten.clamp_max.Tensor")
def clip(call: AtenCall, build: Builder) -> str:
    made = build.cast(call.tensor("self"), call.result.dtype)
    for key, op in (("min", "maximum"), ("max", "minimum")):
        if isinstance(call.arguments.get(key), Ref):
            made = build.binary(op, made, build.cast(call.tensor(key), call.result.dtype), call.name)
    return made


@translates("prims.convert_element_type.default")
def convert(call: AtenCall, build: Builder) -> str:
    return build.cast(call.tensor("a"), call.result.dtype)


@translates("aten.full_like.default", "aten.zeros_like.default", "aten.ones_like.default", "aten.new_full.default", "aten.new_zeros.default",
            "aten.new_ones.default", "aten.fill.Scalar", "prims.full_like.default", "prims.fill.default")
def filled(call: AtenCall, build: Builder) -> str:
    value = call.arguments.get("fill_value", call.arguments.get("value", 1 if "ones" in call.operator else 0))
    assert isinstance(value, (int, float))
    return build.constant(call.name, array_of(torch.full(call.result.shape, value, dtype=getattr(torch, call.result.dtype))))
