/* Runs the network on recorded inputs, and compares the outputs with those that were recorded: selftest FOLDER.

   Whole numbers have to be equal. Others may differ by a thousandth of the largest in their array: compilers order sums in their own ways. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "selftest.h"

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
        fprintf(stderr, "%s cannot be opened\n", path);
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

static double number(const unsigned char *place, int bytes) {
    float narrow;
    double wide;
    memcpy(&narrow, place, sizeof narrow);
    if (bytes == 4) return narrow;
    memcpy(&wide, place, sizeof wide);
    return wide;
}

static int wrong(const unsigned char *found, const unsigned char *wanted, size_t bytes, char kind, int each) {
    if (kind != 'f' || each < 4) return memcmp(found, wanted, bytes) != 0;
    double largest = 0, difference = 0;
    for (size_t i = 0; i < bytes; i += each) {
        const double one = number(found + i, each), other = number(wanted + i, each), size = other < 0 ? -other : other, apart = one - other;
        if (memcmp(found + i, wanted + i, each) == 0) continue;
        if (!(apart <= difference && -apart <= difference)) difference = apart < 0 ? -apart : apart;
        if (size > largest) largest = size;
    }
    return !(difference <= largest / 1000);
}

int main(int count, char **words) {
    const char *folder = count > 1 ? words[1] : ".";
    unsigned char *arena = aligned(ANSOR_NETWORK_ARENA_BYTES), *workspace = aligned(ANSOR_NETWORK_WORKSPACE_BYTES);
    unsigned char *constants = aligned(ANSOR_NETWORK_CONSTANTS_BYTES), *wanted;
    int failures = 0;
    FILE *file = opened(folder, "constants.bin");
    filled(constants, ANSOR_NETWORK_CONSTANTS_BYTES, file);
    fclose(file);
    file = opened(folder, "selftest.bin");
#define X(bytes, kind, each, place) filled(place, bytes, file);
    INPUTS
#undef X
    if (ansor_network_run(arena, constants, workspace, 0, 0) != -1) {
        printf("network: an index is out of range\n");
        return 1;
    }
#define X(bytes, kind, each, place) wanted = aligned(bytes); filled(wanted, bytes, file); failures += wrong(place, wanted, bytes, kind, each);
    OUTPUTS
#undef X
    fclose(file);
    released();
    printf(failures ? "network: wrong, %d outputs\n" : "network: right\n", failures);
    return failures != 0;
}
