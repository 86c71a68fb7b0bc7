/* Memory, files and comparisons of self-tests.

   Whole numbers have to be equal. Others may differ by a thousandth of the largest in their array, because compilers order sums in their own ways;
   numbers of two bytes by a few of their own steps: a 250th for float16 ('f'), a 60th for bfloat16 ('V'). NaN equals any NaN and nothing else. */

#ifndef ANSOR_CHECKS_H
#define ANSOR_CHECKS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void **last; /* a piece of memory, which begins with the address of the one before it */

static unsigned char *aligned(size_t bytes) {
    void **memory = calloc(bytes + 128, 1);
    if (!memory) {
        fprintf(stderr, "no memory for %lu bytes\n", (unsigned long)bytes);
        exit(2);
    }
    *memory = last;
    last = memory;
    return (unsigned char *)memory + 128 - (uintptr_t)memory % 64;
}

static void released(void) {
    while (last) {
        void **memory = last;
        last = *memory;
        free(memory);
    }
}

static FILE *opened(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s cannot be opened; usage: selftest FOLDER, the folder of the exported files\n", path);
        exit(2);
    }
    return file;
}

static void filled(unsigned char *place, size_t bytes, FILE *file) {
    if (fread(place, 1, bytes, file) != bytes) {
        fprintf(stderr, "a file is shorter than it was\n");
        exit(2);
    }
}

static double half(unsigned bits) {
    const int power = (int)(bits >> 10 & 31), digits = (int)(bits & 1023);
    const double size = power == 31 ? (digits ? NAN : INFINITY) : power ? ldexp(1024 + digits, power - 25) : ldexp(digits, -24);
    return bits >> 15 ? -size : size;
}

static double number(const unsigned char *place, char kind, int bytes) {
    float narrow;
    double wide;
    uint16_t bits;
    if (bytes == 8) {
        memcpy(&wide, place, sizeof wide);
        return wide;
    }
    if (bytes == 2) {
        memcpy(&bits, place, sizeof bits);
        if (kind == 'f') return half(bits);
        const uint32_t whole = (uint32_t)bits << 16;
        memcpy(&narrow, &whole, sizeof narrow);
        return narrow;
    }
    memcpy(&narrow, place, sizeof narrow);
    return narrow;
}

static int wrong(const unsigned char *found, const unsigned char *wanted, size_t bytes, char kind, int each) {
    if (kind != 'f' && kind != 'V') return memcmp(found, wanted, bytes) != 0;
    double largest = 0, difference = 0;
    for (size_t i = 0; i < bytes; i += each) {
        const double one = number(found + i, kind, each), other = number(wanted + i, kind, each), size = fabs(other), apart = fabs(one - other);
        if (size > largest && size < INFINITY) largest = size; /* an infinite one would accept any error */
        if (memcmp(found + i, wanted + i, each) == 0 || (isnan(one) && isnan(other))) continue;
        if (isnan(apart)) return 1; /* no later difference may hide it */
        if (apart > difference) difference = apart;
    }
    return difference > largest / (each > 2 ? 1000 : kind == 'f' ? 250 : 60);
}

#endif
