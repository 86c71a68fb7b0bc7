/* What the trial program takes from a board without an operating system (trial/system.h): memory between two addresses, text in and out, and a counter.
 *
 * Nothing moves in or out while it runs. It finds what is asked of it in memory, leaves its answer there, and stops at `ansor_stop`. */
#include "bare.h"
#include "console.h"
#include "../trial/system.h"

enum { PAINT = 0xc3 };

volatile bare_control ansor_control BARE_SHARED;
volatile bare_answer ansor_answer BARE_SHARED;
char ansor_asked[BARE_ASKED] BARE_SHARED;
const trial_manifest *ansor_trial_selected;

static uintptr_t heap;
static uint64_t marks[4] BARE_CHANGING;
static unsigned mark_count BARE_CHANGING;

/* ---- memory */

/* Buffers, by name: traps near them say so. */
enum { ROOMS = 24, NEAR_BUFFER = 16 << 10 };
static struct {
    const char *name;
    uintptr_t start, end;
} rooms[ROOMS];
static unsigned room_count;

void *system_room(uint64_t size, size_t band, const char *name) {
    const uintptr_t end = (uintptr_t)ansor_control.heap_end;
    const uintptr_t start = (heap + band + 63) & ~(uintptr_t)63;
    if (start < heap || start > end || size > end - start || band > end - start - size) return 0;
    heap = start + (uintptr_t)size + band;
    if (room_count < ROOMS) rooms[room_count].name = name, rooms[room_count].start = start, rooms[room_count++].end = start + (uintptr_t)size;
    return (void *)start;
}

void system_leave_room(void) {}

/* Files are places: "ADDRESS SIZE", hexadecimal; "-" is none. */
static uintptr_t place, place_end;

static const char *hexadecimal(const char *text, uint64_t *value) {
    *value = 0;
    for (;; ++text) {
        const int digit = *text >= '0' && *text <= '9' ? *text - '0' : *text >= 'a' && *text <= 'f' ? *text - 'a' + 10 : -1;
        if (digit < 0) return text;
        *value = *value << 4 | (uint64_t)digit;
    }
}

static int read_place(const char *path, uint64_t *address, uint64_t *size) {
    path = hexadecimal(path, address);
    if (*path != ' ') return 0;
    return *hexadecimal(path + 1, size) == 0;
}

const void *system_file(const char *path, uint64_t *size) {
    uint64_t address;
    return read_place(path, &address, size) ? (const void *)(uintptr_t)address : 0;
}

int system_begin_file(const char *path) {
    uint64_t address, size;
    place = place_end = 0;
    if (path[0] == '-') return 1;
    if (!read_place(path, &address, &size)) return 0;
    place = (uintptr_t)address, place_end = (uintptr_t)(address + size);
    return 1;
}

int system_write_file(const void *bytes, uint64_t size) {
    if (!place) return 1;
    if (size > place_end - place) return 0;
    for (uint64_t i = 0; i < size; ++i) ((unsigned char *)place)[i] = ((const unsigned char *)bytes)[i];
    place += (uintptr_t)size;
    return 1;
}

int system_end_file(void) { return 1; }

/* ---- text */

static const char *asked_rest;

size_t system_read(char *text, size_t room) {
    size_t size = 0;
    for (; asked_rest[size] && size < room; ++size) text[size] = asked_rest[size];
    return size;
}

/* Sums of memory and of text: every word decides all bits, by itself and its place. `measure/boards/checksums.py` has the same. */
static uint32_t mixed(uint32_t bits) {
    bits = (bits ^ bits >> 16) * 0x7feb352du;
    bits = (bits ^ bits >> 15) * 0x846ca68bu;
    return bits ^ bits >> 16;
}

typedef struct {
    uint32_t sum, key;
} running_sum;

static void sum_word(running_sum *sum, uint32_t word) {
    sum->sum += mixed(word ^ sum->key);
    sum->key += 0x9e3779b9u;
}

static running_sum said;

static void begin_text(void) { said.sum = 0, said.key = (uint32_t)ansor_control.nonce; }

void system_say(const char *text, size_t size) {
    const int alone = (ansor_control.flags & BARE_ALONE) != 0;
    if (alone) console_write(text, size);
    for (size_t i = 0; i < size; ++i) {
        sum_word(&said, (unsigned char)text[i]);
        if (alone) continue;
        if (ansor_answer.size < BOARD_ANSWER_BYTES) ansor_answer.text[ansor_answer.size++] = text[i];
        else ++ansor_answer.lost;
    }
}

static void say_text(const char *text) {
    size_t size = 0;
    while (text[size]) ++size;
    system_say(text, size);
}

static void say_number(uint64_t number) {
    char digits[16];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[number & 15];
    while (number >>= 4);
    while (count > 0) system_say(digits + --count, 1);
}

/* ---- memory that a candidate may not write to */

/* Behind the buffers every word is looked at that a candidate can write. Where nothing is protected that is all memory, and looking at it would take longer
 * than a trial: every word at first, then some. */
enum { NEAR = 4 << 10, STEP = 256, FAR = 4 << 20 };

static struct {
    int on;
    uintptr_t free, end;
    uint32_t memory, kept, own;
} watched BARE_CHANGING;

static void sum_region(running_sum *sum, uint64_t address, uint64_t size) {
    const uintptr_t from = (uintptr_t)address, words = (uintptr_t)size / 4 * 4;
    for (uintptr_t at = 0; at < words; at += 4) sum_word(sum, register_at(from + at));
    uint32_t last = 0;
    for (uintptr_t at = words; at < size; ++at) last |= (uint32_t) * (volatile unsigned char *)(from + at) << 8 * (at & 3);
    if (words < size) sum_word(sum, last);
}

/* Of what whoever started this has written, and of nothing else. */
static uint32_t sum_of_memory(void) {
    running_sum sum = {0, (uint32_t)ansor_control.nonce};
    for (uint64_t i = 0; i < ansor_control.region_count && i < BARE_REGIONS; ++i) sum_region(&sum, ansor_control.regions[i][0], ansor_control.regions[i][1]);
    return sum.sum;
}

static uint32_t sum_of(uint64_t address, uint64_t size) {
    running_sum sum = {0, 0};
    sum_region(&sum, address, size);
    return sum.sum;
}

static uint32_t sum_of_kept(void) { return sum_of(ansor_control.kept, ansor_control.kept_size); }

/* Of what the harness has beside that, but for what is meant to change. */
static uint32_t sum_of_own(void) {
    running_sum sum = {0, 0};
    sum_region(&sum, (uintptr_t)&ansor_answer, sizeof ansor_answer);
    sum_region(&sum, (uintptr_t)ansor_asked, sizeof ansor_asked);
    sum_region(&sum, (uintptr_t)ansor_bss_start, (uintptr_t)ansor_still_end - (uintptr_t)ansor_bss_start);
    return sum.sum;
}

/* Of memory behind the buffers: paints it, or says whether all of the paint is there. */
static int free_memory(int paint) {
    const uintptr_t end = watched.end, start = (watched.free + 3) & ~(uintptr_t)3;
#ifdef TRIAL_APART
    const uintptr_t near = UINTPTR_MAX, far = UINTPTR_MAX;
#else
    const uintptr_t near = NEAR, far = FAR;
#endif
    for (uintptr_t at = start; at < end && end - at >= 4 && at - start < far; at += at - start < near ? 4 : STEP) {
        if (paint) set_register(at, (uint32_t)at ^ 0xa5c3a5c3u);
        else if (register_at(at) != ((uint32_t)at ^ 0xa5c3a5c3u)) return 0;
    }
    return 1;
}

void system_watch(void) {
    watched.on = 1, watched.free = heap, watched.end = (uintptr_t)ansor_control.heap_end;
#ifdef TRIAL_APART
    const uintptr_t end = allow_writes((uintptr_t)ansor_control.heap_start, heap);
    if (end < watched.end) watched.end = end;
#endif
    watched.memory = sum_of_memory(), watched.kept = sum_of_kept(), watched.own = sum_of_own();
    free_memory(1);
}

const char *system_trespass(void) {
    if (!watched.on) return 0;
    if (sum_of_memory() != watched.memory) return "code, its own or that of the trial program, or what that was told";
    if (sum_of_own() != watched.own) return "memory of the trial program";
    if (sum_of_kept() != watched.kept) return "the outputs of the reference";
    if (watched.free == heap && !free_memory(0)) return "memory behind the buffers";
    return 0;
}

/* ---- the end */

static uint64_t stack_used(void) {
    volatile unsigned char *low = ansor_stack_low;
    while (low < ansor_stack_top && *low == PAINT) ++low;
    return (uint64_t)(ansor_stack_top - low);
}

static void say_named(const char *name, uint64_t number) { say_text(name), say_number(number); }

/* A note behind the answer, whose last word is a sum of all text before it. Memory that cannot be read traps, and ends here again. */
static void finish(void) {
    static int before;
    const int again = before++;
    watchdog_stop();
    const uint32_t memory = again ? 0 : sum_of_memory(), kept = again ? 0 : sum_of_kept();
    say_text("board ");
    for (unsigned i = 0; i < mark_count; ++i) say_number(marks[i]), say_text(" ");
    say_named("stack ", stack_used()), say_named(" memory ", memory), say_named(" kept ", kept), say_text(" sum ");
    say_number(said.sum), say_text("\n");
    ansor_answer.state = BARE_DONE;
    if (ansor_control.flags & BARE_ALONE) machine_end();
    ansor_stop();
}

void system_end(void) { finish(); }

const char *bare_too_long(void) { return ansor_control.limit == UINT32_MAX ? "the counter, which has 32 bits, overflowed" : "it does not end"; }

/* Which buffer an address is nearest to, if any is near. Names are those of a declaration, and stand in quotes here. */
static void say_nearest(uintptr_t where) {
    unsigned nearest = ROOMS;
    uintptr_t away = NEAR_BUFFER;
    for (unsigned i = 0; i < room_count; ++i) {
        const uintptr_t before = rooms[i].start > where ? rooms[i].start - where : 0, past = where >= rooms[i].end ? where - rooms[i].end : 0;
        if (rooms[i].start < rooms[i].end && before + past < away) nearest = i, away = before + past;
    }
    if (nearest == ROOMS) return;
    say_text(", 0x");
    if (where >= rooms[nearest].start && where < rooms[nearest].end) say_number(where - rooms[nearest].start), say_text(" bytes into ");
    else say_number(away), say_text(where < rooms[nearest].start ? " bytes before " : " bytes past the end of ");
    for (const char *letter = rooms[nearest].name; *letter; ++letter)
        if (*letter >= ' ' && *letter != '"' && *letter != '\\') system_say(letter, 1);
}

static void begin_failure(const char *kind, const char *why) {
    if (!(ansor_control.flags & BARE_ALONE)) ansor_answer.size = 0;
    say_text("\n"), begin_text(), say_text("{\"failure\": [\""), say_text(kind), say_text("\", \""), say_text(why);
}

static void end_failure(void) {
    say_text("\"]}\n");
    finish();
}

void bare_trapped(const char *kind, const char *why, uintptr_t pc, uintptr_t where) {
    begin_failure(kind, why);
    if (where) say_text(", address 0x"), say_number(where), say_nearest(where);
    if (pc == BARE_NO_PC) say_text(", at a pc that the stack had no room to keep");
    else if (pc & 1) say_text(", in a call that returns to pc 0x"), say_number(pc - 1);
    else say_text(", at pc 0x"), say_number(pc);
    end_failure();
}

/* 16 bytes and more: a debugger may put something of its own there. */
__attribute__((noinline, noreturn, used, aligned(16))) void ansor_stop(void) {
    for (;;) __asm__ volatile("nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n" ::: "memory");
}

/* ---- time */

double system_seconds(int wall) {
    (void)wall;
    return (double)counter_now() / BOARD_COUNTER_HERTZ;
}

static void mark(void) {
    if (mark_count < 4) marks[mark_count++] = counter_now();
}

/* Two and two belong together. SysTick overflows soon, and has a flag for that, which is cleared when it begins anew. */
void system_mark(int number) {
    (void)number;
#ifdef BOARD_SYSTICK
    if (mark_count % 2 == 0) set_register(BOARD_SYSTICK + 8, 0);
#endif
    mark();
#ifdef BOARD_SYSTICK
    if (mark_count % 2 == 0 && register_at(BOARD_SYSTICK) >> 16 & 1) begin_failure("timeout", "the counter, which has 24 bits, overflowed"), end_failure();
#endif
}

void *system_pool(int threads, trial_parallel_for *parallel_for) {
    (void)threads, (void)parallel_for;
    return 0;
}

/* ---- whether the board is as its file says */

/* The counter and, where there is one, the watchdog, which has to end it. `measure/boards/smoke.py` judges what comes of it. */
static void count_known(void) {
    enum { PASSES = 5000 };
    mark();
    for (uint32_t passes = PASSES; passes <= 4 * PASSES; passes *= 2) known_passes(passes), mark();
    say_text("{\"counted\": true}\n");
    while (ansor_control.limit) known_passes(1);
    finish();
}

/* ---- the beginning */

int trial_main(const char *mode, const char *path);

void bare_clear(void) {
    for (volatile uint64_t *word = ansor_bss_start; word < ansor_bss_end; ++word) *word = 0;
}

static void paint_stack(void) {
    volatile unsigned char here;
    for (volatile unsigned char *byte = ansor_stack_low; byte + 128 < &here; ++byte) *byte = PAINT;
}

void bare_main(void) {
#ifdef BARE_KNOWN
    bare_known();
#endif
    ansor_answer.state = BARE_RUNS, ansor_answer.size = 0, ansor_answer.lost = 0;
    ansor_trial_selected = (const trial_manifest *)(uintptr_t)ansor_control.manifest;
    heap = (uintptr_t)ansor_control.heap_start;
    mark_count = 0;
    paint_stack();
    begin_text();
    const char *path = ansor_asked;
    while (*path++) {}
    asked_rest = path;
    while (*asked_rest++) {}
    start_counting();
#ifdef TRIAL_APART
    allow_writes((uintptr_t)ansor_control.heap_start, (uintptr_t)ansor_control.heap_end);
#endif
    if (ansor_control.limit) watchdog_start(ansor_control.limit);
    if (ansor_control.flags & BARE_COUNTS) count_known();
    trial_main(ansor_asked, path);
    finish();
}
