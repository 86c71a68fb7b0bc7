/* How often to run a program that is timed: `ansor.measure.timing` explains it and has the same. */
#ifndef ANSOR_TRIAL_TIMING_H
#define ANSOR_TRIAL_TIMING_H

#include "arguments.h"

#define COLD_CALL_COUNTS 0.05
#define SINGLE_CALL_COUNTS 1e-3
enum { SINGLE_CALLS = 3, LEAST_LINE = 32 /* bytes of a cache line, of any processor */ };

typedef struct {
    double costs[RECIPE_REPEATS];
    int count, cut_short;
} timing_result;

static trial_parallel_for parallel_for;
static void *pool;

static void alone(void *nothing, trial_body body, void *ctx, long n) {
    (void)nothing;
    body(ctx, 0, n);
}

static void open_pool(void) {
    parallel_for = alone;
    if (asked.threads > 1 && ansor_trial_manifest.threads > 1) pool = system_pool(asked.threads, &parallel_for);
    if (asked.threads > 1 && ansor_trial_manifest.threads > 1 && !pool) fail("load", "the threads could not be made", NULL, ": ", asked.threads);
}

static __attribute__((noinline)) void call(trial_entry entry) {
#ifdef TRIAL_APART
    system_call(pointers, buffers[ansor_trial_manifest.count].data, parallel_for, pool, entry);
#else
    entry(pointers, buffers[ansor_trial_manifest.count].data, parallel_for, pool);
#endif
}

static double seconds_of(int64_t number) {
    const double start = system_seconds(asked.timing.wall);
    for (int64_t i = 0; i < number; ++i) call(ansor_trial_manifest.entry);
    return system_seconds(asked.timing.wall) - start;
}

/* Writes through memory, so that the next call finds nothing of its own in the caches. */
static void flush_caches(void) {
    static volatile unsigned char *memory;
    if (!asked.timing.flush_bytes) return;
    if (!memory) memory = system_room((uint64_t)asked.timing.flush_bytes, BAND, "flush");
    if (!memory) fail("memory", "no room to write through, bytes: ", NULL, "", asked.timing.flush_bytes);
    for (int64_t i = 0; i < asked.timing.flush_bytes; i += LEAST_LINE) memory[i]++;
}

static double median_of(const double *values, int count) {
    double sorted[RECIPE_REPEATS];
    for (int i = 0; i < count; ++i) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; --at) sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static timing_result cut(double seconds) {
    timing_result result = {{seconds}, 1, 1};
    return result;
}

static double warm_seconds(double most) {
    double warm = seconds_of(1);
    for (int i = 1; i < SINGLE_CALLS && warm > most; ++i) {
        const double again = seconds_of(1);
        if (again < warm) warm = again;
    }
    return warm;
}

/* One repeat: seconds of a call. Calls until enough time has passed; `number` is how many calls that takes, and grows. */
static double repeat_seconds(int64_t *number, double wanted, double deadline) {
    flush_caches();
    double total = seconds_of(*number);
    while (total < wanted && system_seconds(1) < deadline) {
        const double needed = total > 0 ? wanted / (total / (double)*number) + 1 : 0, grown = (double)*number * 1.618 + 1;
        *number = (int64_t)(needed > grown ? needed : grown);
        total = seconds_of(*number);
    }
    return total / (double)*number;
}

static timing_result time_repeats(double first_seconds) {
    const recipe_timing *how = &asked.timing;
    const double most = how->best * how->cut_ratio;
    if (first_seconds > (most > COLD_CALL_COUNTS ? most : COLD_CALL_COUNTS)) return cut(first_seconds);
    forget();
    const double deadline = system_seconds(1) + 0.7 * how->limit, single = most > SINGLE_CALL_COUNTS ? most : SINGLE_CALL_COUNTS;
    const double warm = warm_seconds(single), wanted = how->flush_bytes ? 0 : how->min_seconds;
    if (warm > single) return cut(warm);
    int64_t number = how->flush_bytes ? 1 : how->number;
    if (warm > 0 && wanted > 0 && (int64_t)(1.1 * wanted / warm) + 1 > number) number = (int64_t)(1.1 * wanted / warm) + 1;
    timing_result result = {{0}, 0, 0};
    while (result.count < how->repeat + how->contender_repeats) {
        if (result.count == how->repeat && number_finite(how->best) && median_of(result.costs, result.count) > how->contender_ratio * how->best) break;
        result.costs[result.count++] = repeat_seconds(&number, wanted, deadline);
        if (result.costs[0] > most) return cut(result.costs[0]);
        if (system_seconds(1) > deadline) break;
    }
    return result;
}

#endif
