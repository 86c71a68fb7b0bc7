/* Which element has which value: from a key and the element's index alone, so that any of them is made without those before it, with the same bits
 * everywhere. `ansor.measure.trial.fill` has the same in NumPy. Compile it with -ffp-contract=off: a product and a sum are two roundings.
 *
 * The generator is SplitMix64 (Steele, Lea and Flood 2014), begun at the key and read at a place. */
#ifndef ANSOR_TRIAL_FILL_H
#define ANSOR_TRIAL_FILL_H

#include "number.h"

#define FILL_STEP UINT64_C(0x9e3779b97f4a7c15) /* from the state of an element to that of the next */

static inline uint64_t fill_state(uint64_t key, uint64_t index) { return key + (index + 1) * FILL_STEP; }

static inline uint64_t fill_mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Not written out where it is called: boards have little room for code. */
static __attribute__((noinline, unused)) uint64_t fill_bits(uint64_t key, uint64_t index) { return fill_mixed(fill_state(key, index)); }

/* Uniform in [0, 1): 53 bits for doubles, 24 for anything narrower. */
static inline double fill_uniform(uint64_t bits, int bytes) {
    if (bytes == 8) return (double)(bits >> 11) * 0x1p-53;
    return (double)(uint32_t)(bits >> 40) * 0x1p-24;
}

/* A float of `bytes` bytes in [low, high); what rounds up to `high` is `low`. */
static inline double fill_float(uint64_t bits, int bytes, double low, double high) {
    const double value = number_rounded(fill_uniform(bits, bytes) * (high - low) + low, bytes);
    return value >= high ? number_rounded(low, bytes) : value;
}

/* A range of floats of four bytes. `exact`: its numbers are `step` times whole numbers that a float holds, so that none is rounded, and none reaches `high`. */
typedef struct {
    double low, high, span;
    float step;
    int32_t first;
    int exact;
} fill_range;

static inline fill_range fill_range_of(double low, double high) {
    const double span = high - low, step = span * 0x1p-24, first = low / step;
    const int power = (number_bits(step) & ((UINT64_C(1) << 52) - 1)) == 0 && step > 0x1p-100 && step < 0x1p100;
    const int exact = power && first >= -0x1p24 && first <= 0 && first == (double)(int32_t)first && first * step == low;
    const fill_range range = {low, high, span, (float)step, exact ? (int32_t)first : 0, exact};
    return range;
}

/* `fill_float` of four bytes. */
static inline float fill_in_range(const fill_range *range, uint64_t bits) {
    const int32_t part = (int32_t)(bits >> 40);
    if (range->exact) return (float)(range->first + part) * range->step;
    const float value = (float)((double)part * 0x1p-24 * range->span + range->low);
    return (double)value >= range->high ? (float)range->low : value;
}

/* An integer in [low, low + span), `low` where span is 0. */
static inline int64_t fill_integer(uint64_t bits, int64_t low, uint64_t span) {
    if (span == 0) return low;
    const uint64_t away = span >> 32 ? bits % span : ((bits >> 32) * span) >> 32;
    return (int64_t)((uint64_t)low + away);
}

#endif
