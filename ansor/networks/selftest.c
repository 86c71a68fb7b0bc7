/* Runs every variant of the network that this processor supports on recorded inputs, and compares the outputs with the recorded ones: selftest FOLDER.
   checks.h says how far apart they may be. */

#include "checks.h"
#include "network.h"
#include "selftest.h"

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
