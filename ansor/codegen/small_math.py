"""Functions of the C library for processors without one, as C text: each in terms of those that compilers always provide.

exp, log, sin, cos, tan, sqrt, floor, trunc and fmod in double precision exist (`dialect.BUILT_IN`). The others are textbook identities of these, arranged
to avoid cancellation: expm1 and log1p by Kahan's quotients, hyperbolic functions by expm1, atan by three halvings of the angle and its series, erf by the
series of positive terms. In double precision their relative error is below 1e-13, unless the exact value is subnormal; in float32 they are
the same rounded once, as slow as doubles are on the processor. Tests compare them with NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator

_BIG, _BIG_F = "4503599627370496.0", "8388608.0f"  # from here on every number is whole
_WHOLE = "const {t} a = __builtin_fabs{f}(x); return a < {big} ? __builtin_copysign{f}((a + {big}) - {big}, x) : x;"
_NEXT = """union {{ {t} x; {u} k; }} next = {{x}}; if (x != x || y != y) return x + y; if (x == y) return y;
if (x == 0) {{ next.k = 1; return y > 0 ? next.x : -next.x; }} next.k += (x < y) == (x > 0) ? 1 : -1; return next.x;"""

_ATAN = """double a = __builtin_fabs(x); if (a < 1e-8) return x; const int far = a > 1; if (far) a = 1 / a;
for (int half = 0; half < 3; ++half) a = a / (1 + __builtin_sqrt(1 + a * a));
const double s = a * a; double sum = 0; for (int n = 19; n > 0; n -= 2) sum = 1.0 / n - s * sum;
const double angle = 8 * (a * sum); return __builtin_copysign(far ? 1.57079632679489661923 - angle : angle, x);"""
_ATAN2 = """if (x != x || y != y) return x + y; double a = __builtin_fabs(y), b = __builtin_fabs(x); if (a == b && a > 1e300) a = b = 1;
double angle = a == 0 ? 0 : ansor_atan(a / b); if (__builtin_copysign(1.0, x) < 0) angle = 3.14159265358979323846 - angle;
return __builtin_copysign(angle, y);"""
_POW = """if (y == 0 || x == 1) return 1; if (x != x || y != y) return x + y; const double a = __builtin_fabs(x), b = __builtin_fabs(y);
const int whole = __builtin_floor(b) == b, odd = whole && b < 9007199254740992.0 && __builtin_fmod(b, 2) == 1; double z;
if (a == 0 || a == INFINITY) z = (a == 0) == (y > 0) ? 0 : INFINITY;
else if (b == INFINITY) z = a == 1 ? 1 : (a > 1) == (y > 0) ? INFINITY : 0;
else if (x < 0 && !whole) return NAN;
else if (whole && b <= 32) { double p = a; z = 1; for (int n = (int)b; n; n >>= 1, p *= p) if (n & 1) z *= p; if (y < 0) z = 1 / z; }
else z = __builtin_exp(y * __builtin_log(a));
return odd && __builtin_copysign(1.0, x) < 0 ? -z : z;"""
_ERF = """const double a = __builtin_fabs(x); if (a >= 6) return __builtin_copysign(1.0, x); double term = a, sum = a;
for (int n = 1; n < 200 && term > 1e-18 * sum; ++n) { term *= 2 * a * a / (2 * n + 1); sum += term; }
return __builtin_copysign(1.12837916709551257390 * __builtin_exp(-a * a) * sum, x);"""
_HYPOT = """const double a = __builtin_fabs(x), b = __builtin_fabs(y); if (a == INFINITY || b == INFINITY) return INFINITY; if (x != x || y != y) return x + y;
const double m = a < b ? b : a, r = (a < b ? a : b) / m; return m == 0 ? 0 : m * __builtin_sqrt(1 + r * r);"""
_SINH = """const double a = __builtin_fabs(x); double y;
if (a < 22) { const double t = ansor_expm1(a); y = 0.5 * (t + t / (t + 1)); } else { const double e = __builtin_exp(0.5 * a); y = 0.5 * e * e; }
return __builtin_copysign(y, x);"""
_COSH = """const double a = __builtin_fabs(x); if (a < 22) { const double e = __builtin_exp(a); return 0.5 * (e + 1 / e); }
const double e = __builtin_exp(0.5 * a); return 0.5 * e * e;"""
_TANH = """const double a = __builtin_fabs(x); const double t = a < 22 ? ansor_expm1(2 * a) : 1e300;
return x != x ? x : __builtin_copysign(a < 22 ? t / (t + 2) : 1, x);"""
_ASINH = """const double a = __builtin_fabs(x);
const double y = a > 1e9 ? __builtin_log(a) + 0.69314718055994530942 : ansor_log1p(a + a * a / (1 + __builtin_sqrt(a * a + 1)));
return __builtin_copysign(y, x);"""
_ACOSH = """if (!(x >= 1)) return NAN; if (x > 1e9) return __builtin_log(x) + 0.69314718055994530942;
const double t = x - 1; return ansor_log1p(t + __builtin_sqrt(2 * t + t * t));"""
_EXPM1 = """const double u = __builtin_exp(x), v = u - 1;
return u == 1 ? x : v == -1 || u == INFINITY ? v : v * (x / __builtin_log(u));"""
_LOG1P = "const double u = 1 + x; return u == 1 || u == INFINITY ? x : __builtin_log(u) * x / (u - 1);"

BODIES = {
    "expm1": ("x", _EXPM1),
    "log1p": ("x", _LOG1P),
    "sinh": ("x", _SINH),
    "cosh": ("x", _COSH),
    "tanh": ("x", _TANH),
    "asinh": ("x", _ASINH),
    "acosh": ("x", _ACOSH),
    "atanh": ("x", "const double a = __builtin_fabs(x); return __builtin_copysign(0.5 * ansor_log1p(2 * a / (1 - a)), x);"),
    "atan": ("x", _ATAN),
    "asin": ("x", "return ansor_atan(x / __builtin_sqrt((1 - x) * (1 + x)));"),
    "acos": ("x", "return 2 * ansor_atan(__builtin_sqrt((1 - x) / (1 + x)));"),
    "atan2": ("yx", _ATAN2),
    "pow": ("xy", _POW),
    "erf": ("x", _ERF),
    "hypot": ("xy", _HYPOT),
}
"""Functions in double precision: parameters and bodies. `ansor_NAME` in a body is another of them."""

OWN_FLOAT = {
    "rint": ("x", _WHOLE, {"big": (_BIG, _BIG_F)}),
    "nextafter": ("xy", _NEXT, {"u": ("long long", "int")}),
}
"""Functions with a body for each precision."""


def definitions(name: str, single: bool) -> Iterator[tuple[str, str]]:
    """The C name and text of everything that a function needs, itself last; nothing if compilers provide it. single: for float32."""
    if name in OWN_FLOAT:
        parameters, body, words = OWN_FLOAT[name]
        kind, suffix = ("float", "f") if single else ("double", "")
        text = body.format(t=kind, f=suffix, **{word: both[single] for word, both in words.items()})
        yield f"ansor_{name}{suffix}", _function(f"ansor_{name}{suffix}", kind, parameters, text)
    elif name in BODIES:
        parameters, body = BODIES[name]
        for other in BODIES:
            if f"ansor_{other}(" in body:
                yield from definitions(other, False)
        yield f"ansor_{name}", _function(f"ansor_{name}", "double", parameters, body)
        if single:
            yield f"ansor_{name}f", _function(f"ansor_{name}f", "float", parameters, f"return (float)ansor_{name}({', '.join(parameters)});")


def _function(name: str, kind: str, parameters: str, body: str) -> str:
    return f"static inline {kind} {name}({', '.join(f'{kind} {one}' for one in parameters)}) {{ {' '.join(body.split())} }}"
