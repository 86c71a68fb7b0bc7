/* Runs the kernel on recorded inputs, and compares the outputs with the recorded ones: selftest FOLDER. checks.h says how far apart they may be. */

#include "checks.h"
#include "selftest.h"

static int fails(int threads, unsigned char *workspace, FILE *file, RUNNER) {
    unsigned char *wanted, *places[PLACES];
    int failures = 0;
    rewind(file);
#define X(bytes, kind, each, place) place = aligned(bytes); filled(place, bytes, file);
    INPUTS
#undef X
#define X(bytes, kind, each, place) place = aligned(bytes); memset(place, 0xa5, bytes);
    OUTPUTS
#undef X
    CALL;
#define X(bytes, kind, each, place) wanted = aligned(bytes); filled(wanted, bytes, file); failures += wrong(place, wanted, bytes, kind, each);
    OUTPUTS
#undef X
    printf("%s, %d thread%s: ", NAME, threads, threads == 1 ? "" : "s");
    if (failures) printf("wrong, %d outputs\n", failures);
    else printf("right\n");
    return failures != 0;
}

int main(int count, char **words) {
    unsigned char *workspace = aligned(WORKSPACE_BYTES);
    FILE *file = opened(count > 1 ? words[1] : ".", "selftest.bin");
    int failures = fails(1, workspace, file, 0, 0);
#if THREADS > 1
    void *pool = ansor_pool_create(THREADS);
    failures += fails(THREADS, workspace, file, ansor_parallel_for, pool);
    ansor_pool_destroy(pool);
#endif
    fclose(file);
    released();
    return failures != 0;
}
