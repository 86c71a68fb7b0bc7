/* Numbers of the types that arguments have: as bits, rounded, read and written. */
#ifndef ANSOR_TRIAL_NUMBER_H
#define ANSOR_TRIAL_NUMBER_H

#include <stdint.h>

typedef union {
    double value;
    uint64_t bits;
} number_double;

typedef union {
    float value;
    uint32_t bits;
} number_float;

static inline uint64_t number_bits(double value) {
    number_double both = {value};
    return both.bits;
}

static inline double number_of_bits(uint64_t bits) {
    number_double both;
    both.bits = bits;
    return both.value;
}

static inline int number_finite(double value) { return (number_bits(value) >> 52 & 0x7ff) != 0x7ff; }
static inline int number_nan(double value) { return value != value; }
static inline double number_magnitude(double value) { return number_of_bits(number_bits(value) & ~(UINT64_C(1) << 63)); }

/* The half nearest to a double, ties to even. */
static inline uint16_t number_to_half(double value) {
    const uint64_t bits = number_bits(value);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 1024) return (uint16_t)(sign | 0x7c00 | (mantissa ? 0x200 | (uint16_t)(mantissa >> 42) : 0));
    if (exponent < -25) return sign;
    int shift = 42; /* bits that a half has no room for */
    uint64_t kept = (uint64_t)(exponent + 15) << 10;
    if (exponent < -14) {
        shift += -14 - exponent;
        mantissa |= UINT64_C(1) << 52;
        kept = 0;
    }
    const uint64_t rest = mantissa & ((UINT64_C(1) << shift) - 1), middle = UINT64_C(1) << (shift - 1);
    kept += mantissa >> shift;
    if (rest > middle || (rest == middle && (kept & 1))) ++kept; /* may carry into the exponent, which is right */
    return (uint16_t)(sign | (kept < 0x7c00 ? kept : 0x7c00));
}

static inline double number_from_half(uint16_t half) {
    const uint64_t sign = (uint64_t)(half & 0x8000) << 48;
    const int exponent = half >> 10 & 31;
    const uint64_t mantissa = half & 0x3ff;
    if (exponent == 31) return number_of_bits(sign | UINT64_C(0x7ff) << 52 | mantissa << 42);
    if (exponent) return number_of_bits(sign | (uint64_t)(exponent + 1008) << 52 | mantissa << 42);
    const double small = (double)mantissa * 0x1p-24;
    return sign ? -small : small;
}

/* A double rounded to a float of `bytes` bytes. */
static inline double number_rounded(double value, int bytes) {
    if (bytes == 8) return value;
    return bytes == 4 ? (double)(float)value : number_from_half(number_to_half(value));
}

/* The bits of a double as a float of `bytes` bytes. */
static inline uint64_t number_narrow(double value, int bytes) {
    if (bytes == 8) return number_bits(value);
    if (bytes == 2) return number_to_half(value);
    number_float both = {(float)value};
    return both.bits;
}

/* The bits of element `index` of a buffer of numbers of `bytes` bytes. */
static inline uint64_t number_raw(const void *buffer, int bytes, uint64_t index) {
    switch (bytes) {
        case 1: return ((const uint8_t *)buffer)[index];
        case 2: return ((const uint16_t *)buffer)[index];
        case 4: return ((const uint32_t *)buffer)[index];
        default: return ((const uint64_t *)buffer)[index];
    }
}

static inline void number_put(void *buffer, int bytes, uint64_t index, uint64_t bits) {
    switch (bytes) {
        case 1: ((uint8_t *)buffer)[index] = (uint8_t)bits; return;
        case 2: ((uint16_t *)buffer)[index] = (uint16_t)bits; return;
        case 4: ((uint32_t *)buffer)[index] = (uint32_t)bits; return;
        default: ((uint64_t *)buffer)[index] = bits; return;
    }
}

static inline double number_widened(uint64_t bits, int bytes) {
    if (bytes == 8) return number_of_bits(bits);
    if (bytes == 2) return number_from_half((uint16_t)bits);
    number_float both;
    both.bits = (uint32_t)bits;
    return (double)both.value;
}

static inline double number_float_at(const void *buffer, int bytes, uint64_t index) { return number_widened(number_raw(buffer, bytes, index), bytes); }

/* What floats begin with in an output, in turn: a quiet NaN with a payload of our own, a very large number, its negative. `ansor.measure.verify` has the same. */
static inline uint64_t number_unwritten(int bytes, uint64_t index) {
    static const uint64_t patterns[3][3] = {{0x7ea5, 0x7ba5, 0xfba5}, {0x7fe5a5a5, 0x7f25a5a5, 0xff25a5a5},
                                            {UINT64_C(0x7ffda5a5a5a5a5a5), UINT64_C(0x7fe5a5a5a5a5a5a5), UINT64_C(0xffe5a5a5a5a5a5a5)}};
    return patterns[bytes / 4][index % 3];
}

static inline double number_greatest(int bytes) { return bytes == 8 ? 0x1.fffffffffffffp1023 : bytes == 4 ? 0x1.fffffep127 : 65504.0; }

#endif
