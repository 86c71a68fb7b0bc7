"""ATen's elementwise calls."""

from __future__ import annotations

import torch

from ansor.graph.aten.translation import AtenCall, Builder, Ref, Translation, Unsupported, dtype_name, translates
from ansor.graph.dtypes import FLOATS
from ansor.support.bfloat16 import BFLOAT16
from ansor.te.expr import is_float

FLOAT_ONLY = ("ceil", "cos", "erf", "exp", "floor", "hardsigmoid", "hardswish", "log", "log2", "round", "rsqrt", "sigmoid", "silu", "sin", "sqrt",
              "tanh", "trunc")
PLAIN = ("abs", "neg", "relu", *FLOAT_ONLY)
PRIMITIVES = frozenset(["abs", "ceil", "cos", "erf", "exp", "floor", "log", "log2", "neg", "round", "rsqrt", "sin", "sqrt", "tanh", "trunc"])
"""The functions in `PLAIN` that are also primitives, into which PyTorch's reference implementations decompose."""


def plain(op: str) -> Translation:
    """The translation of a function of one operand into the node of that name."""

    def translation(call: AtenCall, build: Builder) -> str:
        source = call.tensor("self")
        if op not in ("abs", "neg", "relu"):
            source = build.cast(source, call.result.dtype)
        if op == "abs" and build.dtype(source) == "uint8":
            return source
        return build.unary(op, source, call.name)

    return translation


for _op in PLAIN:
    translates(f"aten.{_op}.default", *([f"prims.{_op}.default"] if _op in PRIMITIVES else []))(plain(_op))


@translates("aten.gelu.default")
def gelu(call: AtenCall, build: Builder) -> str:
    return build.unary("gelu", call.tensor("self"), call.name, approximate=str(call.arguments["approximate"]))


@translates("aten.leaky_relu.default")
def leaky_relu(call: AtenCall, build: Builder) -> str:
    return build.unary("leaky_relu", call.tensor("self"), call.name, slope=float(call.number("negative_slope")))


@translates("aten.elu.default")
def elu(call: AtenCall, build: Builder) -> str:
    call.required("only plain ELU is translated", scale=1, input_scale=1)
    return build.unary("elu", call.tensor("self"), call.name, alpha=float(call.number("alpha")))


@translates("aten.softplus.default")
def softplus(call: AtenCall, build: Builder) -> str:
    call.required("only plain softplus is translated", beta=1)
    return build.unary("softplus", call.tensor("self"), call.name, threshold=float(call.number("threshold")))


@translates("aten.mish.default")
def mish(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    gate = build.unary("tanh", build.unary("softplus", source, threshold=20.0))
    return build.binary("mul", source, gate, call.name)


@translates("aten.relu6.default", "aten.hardtanh.default", "aten.clamp.default", "aten.clamp_min.default", "aten.clamp_max.default")
def clip(call: AtenCall, build: Builder) -> str:
    given = call.arguments
    low, high = given.get("min_val", given.get("min")), given.get("max_val", given.get("max"))
    if call.operator == "aten.relu6.default":
        low, high = 0.0, 6.0
    source = build.cast(call.tensor("self"), call.result.dtype)
    return build.unary("clip", source, call.name, low=low, high=high)


@translates("aten.reciprocal.default", "prims.reciprocal.default")
def reciprocal(call: AtenCall, build: Builder) -> str:
    return build.binary("div", build.cast(call.tensor("self"), call.result.dtype), 1.0, call.name, reverse=True)


@translates("aten.square.default")
def square(call: AtenCall, build: Builder) -> str:
    source = call.tensor("self")
    return build.binary("mul", source, source, call.name)


@translates("aten.pow.Tensor_Scalar")
def power(call: AtenCall, build: Builder) -> str:
    source, exponent = build.cast(call.tensor("self"), call.result.dtype), call.number("exponent")
    if exponent == 2:
        return build.binary("mul", source, source, call.name)
    if call.result.dtype not in FLOATS:
        raise Unsupported(f"integer powers other than squares are not translated (exponent={exponent})")
    if exponent == 0.5:
        return build.unary("sqrt", source, call.name)
    return build.binary("pow", source, float(exponent), call.name)


_OF_CONDITIONS = {"add": "logical_or", "mul": "logical_and", "maximum": "logical_or", "minimum": "logical_and", "bitwise_and": "logical_and",
                  "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}
"""The logical operation that each arithmetic operation on booleans stands for."""


def of_pair(op: str, *, reverse: bool = False) -> Translation:
    """The translation of a function of two operands, or of one and a number, with PyTorch's rules for their dtypes."""

    def translation(call: AtenCall, build: Builder) -> str:
        right = call.arguments["other"]
        left = _first(call, build, right)
        if not isinstance(right, (Ref, int, float)):
            raise Unsupported(f"its operand is {right!r}, not a tensor or a number")
        call.required("rounded division is not translated", rounding_mode=None)
        alpha = call.arguments.get("alpha", 1)
        common = _common_dtype(build, left, right)
        if call.result.dtype not in ("bool", common):
            raise Unsupported(f"its operands are {common} and its result is {call.result.dtype}")
        left = build.cast(left, common)
        if isinstance(right, Ref):
            other: str | float = build.cast(right, common)
        else:
            other = float(right) if is_float(common) else right
            if common == BFLOAT16 and call.result.dtype == "bool":
                other = float(torch.tensor(other, dtype=torch.bfloat16))  # PyTorch compares with the rounded number
        if alpha != 1:
            assert isinstance(alpha, (int, float))
            other = build.binary("mul", other, alpha) if isinstance(other, str) else other * alpha
        if op == "div":
            left = build.cast(left, call.result.dtype)
            other = build.cast(other, call.result.dtype) if isinstance(other, str) else float(other)
            common = call.result.dtype
        word = _OF_CONDITIONS.get(op, op) if common == "bool" else op
        return build.binary(word, left, other, call.name, dtype=call.result.dtype, reverse=reverse)

    return translation


def _first(call: AtenCall, build: Builder, other: object) -> str:
    """The operand `self`. In parts of a decomposed call it may be a number, which takes the dtype of the other operand if the result is boolean, else the
    result's."""
    given = call.arguments["self"]
    if isinstance(given, Ref) or not isinstance(other, Ref):
        return call.tensor("self")
    return build.number(given, build.dtype(other) if call.result.dtype == "bool" else call.result.dtype)


def _common_dtype(build: Builder, left: str, right: Ref | float) -> str:
    first = torch.empty(build.shape(left), dtype=getattr(torch, build.dtype(left)), device="meta")
    if not isinstance(right, Ref):
        return dtype_name(torch.result_type(first, right))
    return dtype_name(torch.result_type(first, torch.empty(build.shape(right), dtype=getattr(torch, build.dtype(right)), device="meta")))


for _name, _op in (("add", "add"), ("sub", "sub"), ("mul", "mul")):
    translates(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar", f"prims.{_name}.default")(of_pair(_op))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    translates(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar", f"prims.{_name}.default")(of_pair(_name))
translates("aten.rsub.Scalar")(of_pair("sub", reverse=True))
translates("aten.maximum.default", "prims.maximum.default")(of_pair("maximum"))
translates("aten.minimum.default", "prims.minimum.default")(of_pair("minimum"))


@translates("aten.div.Tensor", "aten.div.Scalar", "prims.div.default")
def divide(call: AtenCall, build: Builder) -> str:
    right, dtype = call.arguments["other"], call.result.dtype
    left = _first(call, build, right)
    if isinstance(right, Ref):
        return build.binary("div", build.cast(left, dtype), build.cast(right, dtype), call.name)
    return build.binary("div", build.cast(left, dtype), float(call.number("other")), call.name)


@translates("aten.logical_and.default", "aten.logical_or.default", "aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor", "aten.__and__.Tensor",
            "aten.__or__.Tensor")
def logical(call: AtenCall, build: Builder) -> str:
    if call.result.dtype != "bool" or build.dtype(call.tensor("self")) != "bool" or build.dtype(call.tensor("other")) != "bool":
        raise Unsupported("only logic on booleans is translated")
    op = "logical_and" if "_and" in call.operator else "logical_or"
    return build.binary(op, call.tensor("self"), call.tensor("other"), call.name)


@translates("aten.logical_not.default", "aten.bitwise_not.default")
def logical_not(call: AtenCall, build: Builder) -> str:
    if build.dtype(call.tensor("self")) != "bool":
        raise Unsupported("only logic on booleans is translated")
    return build.unary("logical_not", call.tensor("self"), call.name)


@translates("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf")
def where(call: AtenCall, build: Builder) -> str:
    given = [call.arguments["self"], call.arguments["other"]]
    tensors = [build.cast(one, call.result.dtype) for one in given if isinstance(one, Ref)]
    numbers = [one for one in given if not isinstance(one, Ref)]
    inputs = [call.tensor("condition"), *tensors]
    if not numbers:
        return build.add("where", inputs, call.result.shape, call.result.dtype, call.name)
    first = not isinstance(given[0], Ref)
    return build.add("where", inputs, call.result.shape, call.result.dtype, call.name, scalar=numbers[0], scalar_first=first)


@translates("aten.masked_fill.Scalar")
def masked_fill(call: AtenCall, build: Builder) -> str:
    source, mask = call.tensor("self"), call.tensor("mask")
    return build.add("where", [mask, source], call.result.shape, call.result.dtype, call.name, scalar=call.number("value"), scalar_first=True)


@translates("aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten.to.other", "aten._to_copy.default", "aten.type_as.default")
def cast(call: AtenCall, build: Builder) -> str:
    return build.cast(call.tensor("self"), call.result.dtype)


@translates("aten.clone.default", "aten.contiguous.default", "aten.detach.default", "aten.alias.default", "aten.lift_fresh_copy.default",
            "prims.clone.default", "prims.view_of.default", "aten.conj.default", "aten.real.default", "aten.resolve_conj.default", "aten.resolve_neg.default",
            "aten.positive.default", "aten.conj_physical.default")
def identity(call: AtenCall, build: Builder) -> str:
    return call.tensor("self" if "self" in call.arguments else "a")


@translates("aten.dropout.default", "aten.dropout_.default", "aten.alpha_dropout.default", "aten.feature_dropout.default")
def dropout(call: AtenCall, build: Builder) -> str:
    call.required("dropout in training mode draws random numbers", train=False)
    return call.tensor("input" if "input" in call.arguments else "self")
