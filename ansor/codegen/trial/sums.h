/* Outputs in few numbers: signed sums of blocks for floats, a hash for everything else. `ansor.measure.trial.sums` has the same and judges them. */
#ifndef ANSOR_TRIAL_SUMS_H
#define ANSOR_TRIAL_SUMS_H

#include "arguments.h"

/* What stands for an element that is no finite number, at its place; 0 for a finite one. */
static uint64_t odd_mark(uint64_t sign_bits, double value) {
    if (number_finite(value)) return 0;
    return fill_bits(sign_bits, number_nan(value) ? 1 : value > 0 ? 2 : 3);
}

/* Of elements [begin, end): the sums, the sum of magnitudes, and the marks of elements that are not finite, as hexadecimal digits. */
static void say_block(const recipe_sums *wanted, const void *data, int bytes, uint64_t begin, uint64_t end) {
    double sums[64] = {0}, magnitudes = 0;
    uint64_t odd = 0;
    for (uint64_t i = begin; i < end; ++i) {
        const double value = number_float_at(data, bytes, i);
        const uint64_t signs = fill_bits(wanted->key, i), mark = odd_mark(signs, value);
        odd += mark;
        if (mark) continue;
        for (int j = 0; j < wanted->count; ++j) sums[j] += signs >> j & 1 ? value : -value;
        magnitudes += number_magnitude(value);
    }
    for (int j = 0; j < wanted->count; ++j) say_hex(number_bits(sums[j]));
    say_hex(number_bits(magnitudes));
    say_hex(odd);
}

static uint64_t hash_of(uint64_t key, const void *data, int bytes, uint64_t count) {
    uint64_t hash = 0;
    for (uint64_t i = 0; i < count; ++i) hash += fill_bits(fill_bits(key, i), number_raw(data, bytes, i));
    return hash;
}

static void say_sums(const recipe_sums *wanted, int kind, int bytes, const void *data, uint64_t count) {
    const uint64_t block = (uint64_t)wanted->block;
    say("{"), say_field("argument", wanted->argument), say(", "), say_field("block", wanted->block), say(", "), say_field("count", wanted->count);
    say(kind == 'f' ? ", \"blocks\": \"" : ", \"hash\": \"");
    if (kind != 'f') say_hex(hash_of(wanted->key, data, bytes, count));
    else for (uint64_t begin = 0; begin < count; begin += block) say_block(wanted, data, bytes, begin, count - begin < block ? count : begin + block);
    say("\"}");
}

#endif
