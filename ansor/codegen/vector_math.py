"""Mathematical functions of float32 as C text: one text for a single element and for vectors of any number of lanes, so that a tail equals its body.

GNU vector operations only, and none that depends on a processor. Every polynomial is our own: a discrete minimax fit (Lawson's iteratively reweighted
least squares over 1200 Chebyshev nodes, in double precision against 40 digits), its coefficients rounded to float32 one after the other, lowest power
first, the others fitted again each time. The error beside each is that of the rounded polynomial, relative to the function unless said otherwise.

    exp      exp(x) = 2^n exp(r), n = rint(x / ln 2), |r| <= ln(2) / 2; the power of two in two factors, so that subnormal results round once
    log      x = 2^e m, sqrt(1/2) <= m < sqrt(2); log(x) = e ln 2 + log(1 + f), f = m - 1
    tanh     y / (y + 2) with y = exp(2 |x|) - 1, computed without cancellation
    sigmoid  1 / (1 + e) or e / (1 + e) with e = exp(-|x|), which never overflows
    erf      x P(x^2) below 1, from there 1 - exp(-Q(|x|))
    sin cos  r = x - n pi/2 in double precision with pi/2 in two parts (Cody and Waite 1980); beyond HUGE_ANGLE the C library, lane by lane

The reductions take pi/2 and ln 2 in two parts, the first so short that its product with n is exact. Compilers contract a product and a sum into one operation:
no sum here is one of two products, so that there is one way to do it, and `+ 0.0f` makes a product none.
"""

from __future__ import annotations

from dataclasses import dataclass

HUGE_ANGLE = 131072.0  # beyond, n needs more bits than float32 holds beside its rounding


@dataclass(frozen=True)
class Function:
    """A function of one float32.

    body: C statements. In them F is the type of `x`, U unsigned integers as wide; BITS and VALUE go from one to the other bit by bit, INTEGER(u) is a
    number of type F, WIDE and NARROW go to double precision and back, SELECT(mask, a, b) chooses, EXP(x) is exp, ALL(c) is a constant in every lane.
    ulp: the largest error seen, in units in the last place of the exact result, over every 64th float32; held by the tests, with a little more.
    library: what stands in, lane by lane, where |x| > HUGE_ANGLE or x is no number; "" when the body is right everywhere.
    """

    body: str
    ulp: float
    library: str = ""


# t = n + 1.5 * 2^23: adding that number rounds to an integer, which then stands in the low bits.
_REDUCED = """\
const F t = {y} * 1.44269504f + 12582912.0f; const F n = t - 12582912.0f; const F r = ({y} - n * 0.693145752f) - n * 1.42860677e-6f;"""
# (exp(r) - 1 - r) / r^2 on |r| <= 0.3473: 3.2e-9
_EXP = "const F p = (((r * 1.3818939e-3f + 8.368704e-3f) * r + 0.04166829f) * r + 0.16666521f) * r + 0.49999994f; const F em = p * (r * r) + r;"
_POWER = "const F power = VALUE((BITS(t) - 0x4b3fff81u) << 23);"  # 2^n of a normal number: t's bits less those of 1.5 * 2^23, and the bias of 127
_MAGNITUDE = "const F a = VALUE(BITS(x) & 0x7fffffffu);"
_SIGN = "(BITS(x) & 0x80000000u)"

# 2^n = 2^(h - 128) 2^(m - h - 128) with m = n + 256 and h = m / 2
_EXP_BODY = f"""\
x = SELECT(x > 89.0f, ALL(89.0f), x); x = SELECT(x < -104.0f, ALL(-104.0f), x);
{_REDUCED.format(y="x")}
{_EXP}
const U m = BITS(t) - 0x4b3fff00u; const U h = m >> 1;
return (em + 1.0f) * VALUE((h - 1u) << 23) * VALUE((m - h - 1u) << 23);"""

# A subnormal is scaled by 2^23 first. b / 2^23 is e + 127; what is below are the bits of m less those of sqrt(1/2).
_MANTISSA = """\
const F scaled = SELECT(x < 1.17549435e-38f, x * 8388608.0f, x);
const U b = BITS(scaled) + 0x004afb0du;
const F f = VALUE((b & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
const F e = INTEGER(b >> 23) - SELECT(x < 1.17549435e-38f, ALL(150.0f), ALL(127.0f));"""
_LOG_END = "return SELECT(x > 0.0f, SELECT(x < INFINITY, y, x), SELECT(x == 0.0f, ALL(-INFINITY), ALL(NAN)));"

# (log(1 + f) - f + f^2 / 2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1]: 5.8e-9
_LOG_BODY = f"""\
{_MANTISSA}
const F p = ((((((f * -0.07636435f + 0.12762216f) * f - 0.1315961f) * f + 0.1420158f) * f - 0.16623409f) * f + 0.20001242f) * f - 0.2500082f) * f + 0.3333333f;
const F q = (p * f - 0.5f) * (f * f) + 0.0f;
const F y = e * 0.693145752f + (f + (e * 1.42860677e-6f + q));
{_LOG_END}"""

# (log2(1 + f) / f - 1.442695) on the same interval: 4.6e-9
_LOG2_BODY = f"""\
{_MANTISSA}
const F p = (((((((f * -0.10985033f + 0.18685679f) * f - 0.19143718f) * f + 0.20452382f) * f - 0.23956619f) * f + 0.28856954f) * f - 0.36069867f) * f
+ 0.48089823f) * f - 0.72134733f;
const F q = (p * f + 1.9200591e-8f) * f + 0.0f;
const F y = e + (f * 1.442695f + q);
{_LOG_END}"""

# 2 |x| up to 19: there tanh is 1. What d and d + 2 lost in rounding goes back into the quotient where it matters.
_TANH_BODY = f"""\
{_MAGNITUDE}
const F y = SELECT(a > 9.5f, ALL(19.0f), a + a);
{_REDUCED.format(y="y")}
{_EXP}
{_POWER}
const F d = power * em + (power - 1.0f); const F w = d + 2.0f; const F q = d / w;
const F above = SELECT(n == 0.0f, p * (r * r) - (em - r), ALL(0.0f)); const F below = SELECT(w < 4.0f, d - (w - 2.0f), ALL(0.0f));
return VALUE(BITS((above - q * below) * 0.5f + q) | {_SIGN});"""

# What 1 + d lost in rounding goes back into the quotient.
_SIGMOID_BODY = """\
const F d = EXP(VALUE(BITS(x) | 0x80000000u)); const F w = d + 1.0f; const F lost = d - (w - 1.0f);
const F q = SELECT(x < 0.0f, d, ALL(1.0f)) / w;
return q - q * lost;"""

# erf(x) / x - 1 in x^2 on [0, 1]: 1.4e-9; -log(erfc(x)) on [1, 3.95]: 1.6e-8 of erf
_ERF_BODY = f"""\
{_MAGNITUDE}
const F s = x * x;
const F q = (((((s * 7.806903e-5f - 7.997857e-4f) * s + 5.187162e-3f) * s - 0.026853347f) * s + 0.11283579f) * s - 0.37612626f) * s + 0.12837917f;
const F c = SELECT(a > 4.0f, ALL(4.0f), a);
const F y = ((((c * -1.1504286e-3f + 0.014778142f) * c - 0.088634185f) * c - 0.654489f) * c - 1.1174384f) * c - 2.67172e-3f;
{_REDUCED.format(y="y")}
{_EXP}
{_POWER}
const F far = 1.0f - (em + 1.0f) * power;
return SELECT(a < 1.0f, q * x + x, VALUE(BITS(far) | {_SIGN}));"""

# pi/2 = 1.57079632673412561417 (33 bits) + 6.07710050650619224932e-11. (sin(y) / y - 1) / y^2 and (cos(y) - 1 + y^2 / 2) / y^4 in y^2 on |y| <= 0.793:
# 4.2e-9 and 1.4e-10
_ANGLE = """\
const F t = x * 0.636619772f + 12582912.0f; const F n = t - 12582912.0f;
const F y = NARROW((WIDE(x) - WIDE(n) * 1.57079632673412561417) - WIDE(n) * 6.07710050650619224932e-11);
const F s = y * y;
const F sine = (((s * -1.9507883e-4f + 8.332106e-3f) * s - 0.16666654f) * s) * y + y;
const F cosine = (((s * 2.4430088e-5f - 1.3887298e-3f) * s + 0.041666646f) * s - 0.5f) * s + 1.0f;
const U k = BITS(t){quadrant};
const F z = VALUE(BITS(SELECT((k & 1u) != 0u, cosine, sine)) ^ ((k & 2u) << 30));
return {result};"""

FUNCTIONS = {
    "exp": Function(_EXP_BODY, 1.0),
    "log": Function(_LOG_BODY, 0.9),
    "log2": Function(_LOG2_BODY, 1.9),
    "tanh": Function(_TANH_BODY, 2.0),
    "sigmoid": Function(_SIGMOID_BODY, 1.9),
    "erf": Function(_ERF_BODY, 1.3),
    "sin": Function(_ANGLE.format(quadrant="", result="SELECT(x == 0.0f, x, z)"), 1.6, "sinf"),
    "cos": Function(_ANGLE.format(quadrant=" + 1u", result="z"), 1.6, "cosf"),
}
