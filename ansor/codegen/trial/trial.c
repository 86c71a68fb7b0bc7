/* The trial program: a candidate, its manifest and this. It makes the inputs, runs the candidate, proves the outputs, and says what it cost.
 *
 *     program reference OUT     runs once, keeps all outputs in the file OUT, and how far they move when inputs move a little
 *     program trial REF         runs, compares with the outputs kept in REF (-: with nothing), then times if the recipe says so
 *
 * The recipe comes on standard input (recipe.h), the answer goes to standard output (say.h). The program ends with status 0 also when it reports a failure;
 * anything else is a crash. What it takes from the system is in system.h; it allocates nothing else. */
#include "check.h"
#include "sums.h"
#include "sensitivity.h"
#include "timing.h"

#define KEPT_MAGIC UINT64_C(0x32747065736e616b) /* of the file of outputs: a header, an entry for each output, the contents: of floats doubles, then how far each moves */
enum { HEADER_WORDS = 4, ENTRY_WORDS = 8, MARK_NOTHING = 1, MARK_CALL = 2 };
#define USUAL 0.9 /* the share of elements that a sensitivity speaks for */

static kept_output kept[RECIPE_OUTPUTS];
static int kept_count;
static double input_scale;

/* The call that is marked, for whoever counts: the marks around nothing tell what marks cost. Where caches matter, other calls come before it. */
static __attribute__((noinline)) void nothing(void *const *args, unsigned char *workspace, trial_parallel_for loop, void *ctx) { (void)args, (void)workspace, (void)loop, (void)ctx; }

static __attribute__((noinline)) void marked(trial_entry entry, int number) {
    system_mark(number);
    call(entry);
    system_mark(number);
}

static double first_call(void) {
    const trial_entry volatile idle = nothing, entry = ansor_trial_manifest.entry; /* both calls the same code */
    for (int i = 0; i < asked.warm; ++i) call(entry);
    if (asked.counted) marked(idle, MARK_NOTHING);
    const double start = system_seconds(1);
    if (asked.counted) marked(entry, MARK_CALL);
    else call(ansor_trial_manifest.entry);
    return system_seconds(1) - start;
}

/* The largest magnitude of a float input, 1 where there is none. */
static double scale_of_inputs(void) {
    double largest = -1;
    for (int i = 0; i < ansor_trial_manifest.count; ++i) {
        const trial_argument *argument = &ansor_trial_manifest.arguments[i];
        for (uint64_t k = 0; argument->role != 'o' && argument->kind == 'f' && k < argument->size; ++k) {
            const double size = number_magnitude(number_float_at(buffers[i].data, argument->bytes, k));
            if (size > largest) largest = size;
        }
    }
    return largest < 0 ? 1 : largest;
}

static void *room_for(uint64_t size) {
    void *room = system_room(size, BAND, "reference");
    if (!room) fail("memory", "no room for the reference's outputs, bytes: ", NULL, "", (int64_t)size);
    return room;
}

/* Copies an output: floats as doubles. */
static void copy_output(int place, void *copy) {
    const trial_argument *argument = &ansor_trial_manifest.arguments[place];
    for (uint64_t i = 0; i < argument->size; ++i) {
        const uint64_t bits = number_raw(buffers[place].data, argument->bytes, i);
        if (argument->kind == 'f') ((double *)copy)[i] = number_widened(bits, argument->bytes);
        else number_put(copy, argument->bytes, i, bits);
    }
}

/* Bytes of an output in the file: those of its elements and, of floats, of how far each moves. */
static uint64_t kept_size(const kept_output *output) { return output->count * (uint64_t)(output->bytes + (output->kind == 'f' ? (int)sizeof(float) : 0)); }

static void keep_outputs(void) {
    for (int i = 0; i < ansor_trial_manifest.count; ++i) {
        const trial_argument *argument = &ansor_trial_manifest.arguments[i];
        if (argument->role != 'o') continue;
        if (kept_count == RECIPE_OUTPUTS) fail("load", "the reference has too many outputs", NULL, ", more than ", RECIPE_OUTPUTS);
        const int bytes = argument->kind == 'f' ? 8 : argument->bytes;
        kept_output output = {NULL, NULL, argument->size, argument->kind, bytes, 0};
        unsigned char *copy = room_for(kept_size(&output));
        float *moved = (float *)(copy + argument->size * (uint64_t)bytes);
        copy_output(i, copy);
        for (uint64_t k = 0; argument->kind == 'f' && k < argument->size; ++k) moved[k] = 0;
        output.data = copy, output.moved = moved;
        kept[kept_count++] = output;
    }
}

/* Notes how far each element moved, if that is farther than before. What is not finite did not move. */
static void note_moves(const distances *apart, float *moved) {
    for (uint64_t i = 0; i < apart->count; ++i) {
        const double away = number_magnitude(apart->now[i] - apart->first[i]), most = number_greatest(4);
        const float narrow = (float)(away > most ? most : away);
        if (number_finite(away) && narrow > moved[i]) moved[i] = narrow;
    }
}

/* Runs again with inputs that were moved a little, and notes how far outputs moved. */
static void find_sensitivity(int64_t move) {
    for (int i = 0; i < ansor_trial_manifest.count; ++i)
        if (ansor_trial_manifest.arguments[i].role != 'o' && ansor_trial_manifest.arguments[i].kind == 'f') fill_argument(i, move);
    call(ansor_trial_manifest.entry);
    int slot = 0;
    for (int i = 0; i < ansor_trial_manifest.count; ++i) {
        const trial_argument *argument = &ansor_trial_manifest.arguments[i];
        if (argument->role != 'o') continue;
        kept_output *output = &kept[slot++];
        if (argument->kind != 'f' || argument->bytes != 8) continue; /* a reference in double precision, or nothing */
        const distances apart = {(const double *)output->data, (const double *)buffers[i].data, output->count};
        const double sensitivity = sensitivity_of(&apart, USUAL);
        if (sensitivity > output->sensitivity) output->sensitivity = sensitivity;
        note_moves(&apart, (float *)(uintptr_t)output->moved);
    }
}

static void write_kept(const char *path) {
    uint64_t words[HEADER_WORDS + RECIPE_OUTPUTS * ENTRY_WORDS] = {KEPT_MAGIC, (uint64_t)kept_count, number_bits(input_scale), 0};
    uint64_t offset = sizeof(uint64_t) * (uint64_t)(HEADER_WORDS + kept_count * ENTRY_WORDS);
    const uint64_t head = offset;
    for (int i = 0; i < kept_count; ++i) {
        uint64_t *entry = words + HEADER_WORDS + i * ENTRY_WORDS;
        entry[0] = offset, entry[1] = kept[i].count, entry[2] = (uint64_t)kept[i].kind, entry[3] = (uint64_t)kept[i].bytes, entry[4] = number_bits(kept[i].sensitivity);
        offset += (kept_size(&kept[i]) + 63) / 64 * 64;
    }
    static const unsigned char padding[64];
    int whole = system_begin_file(path) && system_write_file(words, head);
    for (int i = 0; whole && i < kept_count; ++i) {
        const uint64_t size = kept_size(&kept[i]);
        whole = system_write_file(kept[i].data, size) && system_write_file(padding, (size + 63) / 64 * 64 - size);
    }
    if (!whole || !system_end_file()) fail("machine", "the outputs of the reference cannot be written", NULL, "", -1);
}

static void read_kept(const char *path) {
    uint64_t size = 0;
    const uint64_t *words = system_file(path, &size);
    if (!words || size < HEADER_WORDS * 8 || words[0] != KEPT_MAGIC || words[1] > RECIPE_OUTPUTS || size < 8 * (HEADER_WORDS + words[1] * ENTRY_WORDS))
        fail("machine", "the outputs of the reference are not there, or damaged", NULL, "", -1);
    kept_count = (int)words[1];
    input_scale = number_of_bits(words[2]);
    for (int i = 0; i < kept_count; ++i) {
        const uint64_t *entry = words + HEADER_WORDS + i * ENTRY_WORDS;
        const uint64_t each = entry[2] == 'f' ? 8 + sizeof(float) : entry[3] ? entry[3] : 1;
        if (entry[3] > 8 || (entry[2] == 'f' && entry[3] != 8) || entry[0] > size || entry[1] > (size - entry[0]) / each) fail("machine", "the outputs of the reference are damaged", NULL, "", -1);
        const unsigned char *data = (const unsigned char *)words + entry[0];
        kept[i] = (kept_output){data, (const float *)(data + entry[1] * entry[3]), entry[1], (int)entry[2], (int)entry[3], number_of_bits(entry[4])};
    }
}

static void say_output(const kept_output *output) {
    uint64_t nan = 0, infinite = 0;
    for (uint64_t i = 0; output->kind == 'f' && i < output->count; ++i) {
        const double value = ((const double *)output->data)[i];
        nan += (uint64_t)number_nan(value);
        infinite += !number_nan(value) && !number_finite(value);
    }
    say("{"), say_field("size", (int64_t)output->count), say(", "), say_field("nan", (int64_t)nan), say(", ");
    say_field("infinite", (int64_t)infinite), say(", "), say_double_field("sensitivity", output->sensitivity), say("}");
}

static int slot_of(int argument) {
    int slot = 0;
    for (int i = 0; i < argument; ++i) slot += ansor_trial_manifest.arguments[i].role == 'o';
    return slot;
}

static void run_reference(const char *path) {
    const double seconds = first_call();
    check_trespass();
    input_scale = scale_of_inputs();
    keep_outputs();
    for (int64_t move = 0; move < asked.moves && seconds < asked.move_limit; ++move) find_sensitivity(move);
    write_kept(path);
    say("{\"reference\": {"), say_double_field("input_scale", input_scale), say(", \"outputs\": [");
    for (int i = 0; i < kept_count; ++i) say(i ? ", " : ""), say_output(&kept[i]);
    say("]}, \"sums\": [");
    for (int i = 0; i < asked.sums_count; ++i) {
        const kept_output *output = &kept[slot_of(asked.sums[i].argument)];
        say(i ? ", " : ""), say_sums(&asked.sums[i], output->kind, output->bytes, output->data, output->count);
    }
    say("]}\n");
}

/* Checks all outputs. 0 when one is wrong. */
static int check_outputs(checked *results) {
    int right = 1;
    for (int i = 0; i < asked.check_count; ++i) {
        if (asked.checks[i].slot >= kept_count) fail("load", "the reference that was kept has too few outputs", NULL, "", -1);
        results[i] = check_output(&asked.checks[i], &kept[asked.checks[i].slot], input_scale);
        right = right && !results[i].wrong && !results[i].unwritten;
    }
    return right;
}

static void say_trial(const checked *results, const timing_result *timing, int later) {
    say("{\"costs\": [");
    for (int i = 0; i < timing->count; ++i) say(i ? ", " : ""), say_double(timing->costs[i]);
    say("], \"cut_short\": "), say(timing->cut_short ? "true" : "false"), say(", \"later\": "), say(later ? "true" : "false"), say(", \"check\": [");
    for (int i = 0; i < asked.check_count; ++i) say(i ? ", " : ""), say_checked(&asked.checks[i], &kept[asked.checks[i].slot], &results[i]);
    say("], \"sums\": [");
    for (int i = 0; i < asked.sums_count; ++i) {
        const trial_argument *argument = &ansor_trial_manifest.arguments[asked.sums[i].argument];
        say(i ? ", " : ""), say_sums(&asked.sums[i], argument->kind, argument->bytes, buffers[asked.sums[i].argument].data, argument->size);
    }
    say("]}\n");
}

/* Everything that came out, one output after the other. */
static void write_outputs(void) {
    int whole = system_begin_file(asked.outputs);
    for (int i = 0; i < ansor_trial_manifest.count; ++i)
        if (ansor_trial_manifest.arguments[i].role == 'o') whole = whole && system_write_file(buffers[i].data, buffers[i].size);
    if (!whole || !system_end_file()) fail("machine", "the outputs cannot be written", NULL, "", -1);
}

static void run_trial(const char *path) {
    static checked results[RECIPE_OUTPUTS];
    timing_result timing = {{0}, 0, 0};
    if (asked.check_count) read_kept(path);
    system_watch();
    const double seconds = first_call();
    check_trespass();
    if (asked.outputs) write_outputs();
    int right = check_outputs(results), later = 0;
    if (right && asked.timing.on) {
        timing = time_repeats(seconds);
        check_trespass();
        right = check_outputs(results); /* threads may race, and a second call may add to the first */
        later = !right;
    }
    say_trial(results, &timing, later);
}

int trial_main(const char *mode, const char *path) {
    recipe_read();
    make_buffers();
    open_pool();
    if (recipe_same(mode, "reference")) run_reference(path);
    else if (recipe_same(mode, "trial")) run_trial(path);
    else fail("load", "the program knows the modes reference and trial alone", NULL, "", -1);
    say_flush();
    system_end();
    return 0;
}
