/* Steps of a network in their order, each a kernel on its arrays, whose indices are checked first. Seen as unsigned, negative indices are large. */

#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <time.h>

typedef void (*parallel_for_t)(void *pool, void (*body)(void *, long, long), void *ctx, long n);

struct check {
    const void *indices;
    int64_t count, bytes; /* of each index */
    uint64_t rows;
};

struct step {
    void (*kernel)(void *const *arguments, unsigned char *workspace, parallel_for_t parallel_for, void *pool);
    void *const *arguments;
    const struct check *checks;
    int64_t check_count, parallel;
};

static int is_outside(const struct check *one) {
    for (int64_t i = 0; i < one->count; i++) {
        const uint64_t index = one->bytes == 8   ? ((const uint64_t *)one->indices)[i]
                               : one->bytes == 4 ? ((const uint32_t *)one->indices)[i]
                               : one->bytes == 2 ? ((const uint16_t *)one->indices)[i]
                                                 : ((const uint8_t *)one->indices)[i];
        if (index >= one->rows) return 1;
    }
    return 0;
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* -1, or the number of the check, over all steps, that found an index out of range: the steps after it were not run. `times`: NULL, or where to store the
   time at the beginning, and at the end of each step, in nanoseconds. */
int64_t ansor_step_run(const struct step *steps, int64_t count, unsigned char *workspace, parallel_for_t parallel_for, void *pool, int64_t *times) {
    int64_t checked = 0;
    if (times) *times++ = nanoseconds();
    for (const struct step *one = steps; one < steps + count; one++) {
        for (int64_t i = 0; i < one->check_count; i++, checked++)
            if (is_outside(one->checks + i)) return checked;
        one->kernel(one->arguments, workspace, one->parallel ? parallel_for : 0, one->parallel ? pool : 0);
        if (times) *times++ = nanoseconds();
    }
    return -1;
}
