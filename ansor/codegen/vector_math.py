"""Mathematical functions of float32 as C text: one text for a single element and for vectors of any number of lanes, so that a tail equals its body.

GNU vector operations only, and none that depends on a processor. Every polynomial is our own: a discrete minimax fit (Lawson's iteratively reweighted
least squares over 1200 Chebyshev nodes, in double precision against 40 digits), its coefficients rounded to float32 one after the other, lowest power
first, the others fitted again each time. The error beside each is that of the rounded polynomial, relative to the function unless said otherwise.

    exp      exp(x) = 2^n exp(r), n = rint(x / ln 2), |r| <= ln(2) / 2; the power of two in two factors, so that subnormal results round once
    log      x = 2^e m, sqrt(1/2) <= m < sqrt(2); log(x) = e ln 2 + log(1 + f), f = m - 1
    tanh     y / (y + 2) with y = exp(2 |x|) - 1, computed without cancellation
    sigmoid  1 / (1 + exp(-x)), numerator and denominator times 2^-32: then no power of two leaves the range of normal numbers
    erf      x P(x^2) below 1.15, from there 1 - Q(|x|)^4
    sin cos  r = x - n pi/2 in double precision with pi/2 in two parts (Cody and Waite 1980); beyond HUGE_ANGLE the C library, lane by lane

The reductions take pi/2 and ln 2 in two parts, the first so short that its product with n is exact. Compilers contract a product and a sum into one operation:
no sum here is one of two products, so that there is one way to do it, and `+ 0.0f` makes a product none.
"""

from __future__ import annotations

from dataclasses import dataclass

HUGE_ANGLE = 131072.0  # beyond, n needs more bits than float32 holds besides its rounding


@dataclass(frozen=True)
class Function:
    """A function of one float32.

    body: C statements. In them F is the type of `x`, U unsigned integers as wide; BITS and VALUE go from one to the other bit by bit, INTEGER(u) is a
    number of type F, WIDE and NARROW go to double precision and back, SELECT(mask, a, b) chooses, ALL(c) is a constant in every lane.
    ulp: the largest error seen, in units in the last place of the exact result, over every 64th float32; held by the tests, with a little more.
    library: what stands in, lane by lane, where |x| > HUGE_ANGLE or x is NaN; "" when the body is right everywhere.
    """

    body: str
    ulp: float
    library: str = ""


def _reduced(y: str, b: int) -> str:
    """n and r of exp(y), and t, whose bits shifted by 23 are those of 2^(n + b - 127).

    Adding 1.5 * 2^23 + b rounds to an integer, so that n + b stands in the low bits of t. The shift keeps nine of them; above those of n + b there are zeros.
    """
    t = f"{12582912 + b}.0f"
    return f"const F t = {y} * 1.44269504f + {t}; const F n = t - {t}; const F r = ({y} - n * 0.693145752f) - n * 1.42860677e-6f;"


# (exp(r) - 1 - r) / r^2 on |r| <= 0.3473: 3.2e-9
_EXP = "const F p = (((r * 1.3818939e-3f + 8.368704e-3f) * r + 0.04166829f) * r + 0.16666521f) * r + 0.49999994f; const F em = p * (r * r) + r;"
_POWER = "const F power = VALUE(BITS(t) << 23);"
_MAGNITUDE = "const F a = VALUE(BITS(x) & 0x7fffffffu);"
_SIGN = "(BITS(x) & 0x80000000u)"

# 2^n = 2^(h - 127) 2^(m - h - 127) with m = n + 254 and h = m / 2. What else is in t's bits, halved or not, is shifted out.
_EXP_BODY = f"""\
x = SELECT(x > 89.0f, ALL(89.0f), x); x = SELECT(x < -104.0f, ALL(-104.0f), x);
{_reduced("x", 254)}
{_EXP}
const U h = BITS(t) >> 1; const F power = VALUE(h << 23);
return (em * power + power) * VALUE((BITS(t) - h) << 23);"""

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
{_reduced("y", 127)}
{_EXP}
{_POWER}
const F d = power * em + (power - 1.0f); const F w = d + 2.0f; const F q = d / w;
const F above = SELECT(n == 0.0f, p * (r * r) - (em - r), ALL(0.0f)); const F below = SELECT(w < 4.0f, d - (w - 2.0f), ALL(0.0f));
return VALUE(BITS((above - q * below) * 0.5f + q) | {_SIGN});"""

# Beyond 20 the denominator is 1; at 104 the quotient rounds to 0. The product with a power of two is exact, so this is exp(-x) + 1 in two roundings. In this
# order they are small: 2^n + 1 first loses half a unit of exp(-x) where n = 24 (2.3 ulp in all).
_SIGMOID_BODY = f"""\
x = SELECT(x > 20.0f, ALL(20.0f), x); x = SELECT(x < -104.0f, ALL(-104.0f), x);
const F y = -x;
{_reduced("y", 127 - 32)}
{_EXP}
{_POWER}
return 2.32830644e-10f / ((em * power + 2.32830644e-10f) + power);"""

# erf(x) / x - 1 in x^2 on [0, 1.15]: 1.4e-8; erfc(x)^(1/4) on [1.15, 3.95]: 7.6e-9 of erf. At 4 the fourth power is below half a unit in the last place of 1.
_ERF_BODY = f"""\
{_MAGNITUDE}
const F s = x * x;
const F q = (((((s * 6.7227025e-5f - 7.632436e-4f) * s + 0.0051404033f) * s - 0.026825283f) * s + 0.112827964f) * s - 0.37612543f) * s + 0.12837915f;
const F c = SELECT(a > 4.0f, ALL(4.0f), a);
const F p = ((((((c * -1.8262211e-4f + 0.003278219f) * c - 0.022473633f) * c + 0.0669592f) * c - 0.052063927f) * c - 0.061661515f)
* c - 0.30985683f) * c + 1.0057721f;
const F w = p * p; const F far = 1.0f - w * w;
return SELECT(a < 1.15f, q * x + x, VALUE(BITS(far) | {_SIGN}));"""

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
    "sigmoid": Function(_SIGMOID_BODY, 2.0),
    "erf": Function(_ERF_BODY, 1.7),
    "sin": Function(_ANGLE.format(quadrant="", result="SELECT(x == 0.0f, x, z)"), 1.6, "sinf"),
    "cos": Function(_ANGLE.format(quadrant=" + 1u", result="z"), 1.6, "cosf"),
}
