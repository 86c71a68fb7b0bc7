/* How far an output moves when inputs move a little: the 0.9 quantile of the distances, as NumPy interpolates it, without sorting or more memory. */
#ifndef ANSOR_TRIAL_SENSITIVITY_H
#define ANSOR_TRIAL_SENSITIVITY_H

#include "number.h"

#ifdef TRIAL_SMALL
enum { DIGIT_BITS = 6 };
#else
enum { DIGIT_BITS = 11 };
#endif

typedef struct {
    const double *first, *now;
    uint64_t count;
} distances;

/* The bits of a distance, which order as distances do; all ones where it is not finite. */
static uint64_t distance_bits(const distances *of, uint64_t index) {
    const double away = number_magnitude(of->now[index] - of->first[index]);
    return number_finite(away) ? number_bits(away) : UINT64_MAX;
}

/* The distance that has `rank` others before it in order, digit by digit from the highest. */
static uint64_t distance_of_rank(const distances *of, uint64_t rank) {
    static uint64_t counts[1 << DIGIT_BITS];
    uint64_t prefix = 0;
    int shift = 66; /* 6 digits of 11 bits, or 11 of 6 */
    while (shift > 0) {
        const int above = shift;
        shift -= DIGIT_BITS;
        for (int i = 0; i < 1 << DIGIT_BITS; ++i) counts[i] = 0;
        for (uint64_t i = 0; i < of->count; ++i) {
            const uint64_t bits = distance_bits(of, i);
            if (above >= 64 || bits >> above == prefix) ++counts[bits >> shift & ((1 << DIGIT_BITS) - 1)];
        }
        uint64_t digit = 0;
        while (rank >= counts[digit]) rank -= counts[digit++];
        prefix = prefix << DIGIT_BITS | digit;
    }
    return prefix;
}

/* The least distance above one; that one where there is another as large, told by how many are not above. */
static uint64_t distance_after(const distances *of, uint64_t bits, uint64_t rank) {
    uint64_t next = UINT64_MAX, not_above = 0;
    for (uint64_t i = 0; i < of->count; ++i) {
        const uint64_t other = distance_bits(of, i);
        if (other <= bits) ++not_above;
        else if (other < next) next = other;
    }
    return not_above > rank + 1 ? bits : next;
}

static double sensitivity_of(const distances *of, double share) {
    uint64_t finite = 0;
    for (uint64_t i = 0; i < of->count; ++i) finite += distance_bits(of, i) != UINT64_MAX;
    if (!finite) return 0;
    const double place = (double)(finite - 1) * share;
    const uint64_t rank = (uint64_t)place;
    const uint64_t low = distance_of_rank(of, rank);
    if (rank + 1 >= finite) return number_of_bits(low);
    const double a = number_of_bits(low), b = number_of_bits(distance_after(of, low, rank)), part = place - (double)rank;
    return part >= 0.5 ? b - (b - a) * (1 - part) : a + (b - a) * part;
}

#endif
