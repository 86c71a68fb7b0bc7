/* Runs every variant of the network that this processor supports on recorded inputs, and compares the outputs with the recorded ones: selftest FOLDER.

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
        if (size > largest && size - size == 0) largest = size; /* an infinite one would accept any error */
        if (memcmp(found + i, wanted + i, each) == 0) continue;
        if (!(apart <= difference && -apart <= difference)) difference = apart < 0 ? -apart : apart;
    }
    return !(difference <= largest / 1000);
}

#ifdef EMBEDDED
static const unsigned char *constants_of(const char *folder) {
    (void)folder;
    return ansor_network_constants;
}
#else
static const unsigned char *constants_of(const char *folder) {
    unsigned char *constants = aligned(ANSOR_NETWORK_CONSTANTS_BYTES);
    FILE *file = opened(folder, "constants.bin");
    filled(constants, ANSOR_NETWORK_CONSTANTS_BYTES, file);
    fclose(file);
    return constants;
}
#endif

static int fails(const ansor_network_variant_t *one, unsigned char *arena, const unsigned char *constants, unsigned char *workspace, FILE *file) {
    unsigned char *wanted;
    int failures = 0;
    rewind(file);
#define X(bytes, kind, each, place) filled(place, bytes, file);
    INPUTS
#undef X
    if (one->run(arena, constants, workspace, 0, 0) != -1) {
        printf("%s: an index is out of range\n", one->name);
        return 1;
    }
#define X(bytes, kind, each, place) wanted = aligned(bytes); filled(wanted, bytes, file); failures += wrong(place, wanted, bytes, kind, each);
    OUTPUTS
#undef X
    if (failures) printf("%s: wrong, %d outputs\n", one->name, failures);
    else printf("%s: right\n", one->name);
    return failures != 0;
}

int main(int count, char **words) {
    const char *folder = count > 1 ? words[1] : ".";
    unsigned char *arena = aligned(ANSOR_NETWORK_ARENA_BYTES), *workspace = aligned(ANSOR_NETWORK_WORKSPACE_BYTES);
    const unsigned char *constants = constants_of(folder);
    int failures = 0;
    FILE *file = opened(folder, "selftest.bin");
    for (const ansor_network_variant_t *one = ansor_network_variants; one->name; one++)
        if (one->runs_here()) failures += fails(one, arena, constants, workspace, file);
    fclose(file);
    released();
    return failures != 0;
}
