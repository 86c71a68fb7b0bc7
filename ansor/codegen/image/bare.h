/* What an image and whoever runs it say to each other, by memory: addresses of these are symbols of the image. All fields have 64 bits, little end first. */
#ifndef ANSOR_BARE_H
#define ANSOR_BARE_H

#include "registers.h"

#define BARE_SHARED __attribute__((section(".shared"), used, aligned(8))) /* not cleared at the start: it was written from outside */
#define BARE_NO_PC UINTPTR_MAX                                             /* of a trap that could not keep it */
#define BARE_CHANGING __attribute__((section(".changing")))                /* changes while a candidate runs, as nothing else of the harness does */

enum { BARE_ASKED = 3 << 10 }; /* bytes of what is asked */
#ifndef BOARD_ANSWER_BYTES
#define BOARD_ANSWER_BYTES 4096
#endif

enum { BARE_ALONE = 1 }; /* nobody reads the memory: the answer goes to the console, and the machine ends itself */
enum { BARE_COUNTS = 2 }; /* no candidate runs: loops of known lengths do, between marks */

enum { BARE_REGIONS = 32 };

/* Written before a run. manifest: of the candidate; heap: where buffers may be; limit: ticks of the watchdog's timer, 0 for none.
 * nonce: begins the sums, so that those of another run are not taken for these; kept: outputs of a reference, and their bytes;
 * regions: addresses and bytes of what is there and stays as it is, of which as many are written as there are. */
typedef struct {
    uint64_t flags, manifest, heap_start, heap_end, limit, nonce, kept, kept_size, region_count, regions[BARE_REGIONS][2];
} bare_control;

/* Written by the run. state: 0 before it has begun, then one of these. size: bytes of the answer; lost: bytes that had no room. */
enum { BARE_RUNS = 1, BARE_DONE = 2 };

typedef struct {
    uint64_t state, size, lost;
    char text[BOARD_ANSWER_BYTES];
} bare_answer;

extern volatile bare_control ansor_control;
extern volatile bare_answer ansor_answer;
extern char ansor_asked[BARE_ASKED]; /* three texts, each with its zero: the mode, the kept file, the recipe */
extern uint64_t ansor_bss_start[], ansor_still_end[], ansor_bss_end[]; /* before still_end: what does not change while a candidate runs */
extern char ansor_code_end[];
extern volatile unsigned char ansor_stack_low[], ansor_stack_top[];

void bare_clear(void);                                                               /* zeroes what C wants to be zero, before anything else */
void bare_known(void);                                                               /* of images that were told all (BARE_KNOWN): says it */
void bare_main(void);                                                                /* called by the start-up code, on a fresh stack */
void bare_trapped(const char *kind, const char *why, uintptr_t pc, uintptr_t where); /* called after a trap, on a fresh stack; does not return. An odd pc is
                                                                                        the return address of the innermost call */
void ansor_stop(void);                                                               /* where every run ends */

/* Of boards that protect memory: where a candidate may write from now on, beside its stack. Processors protect whole blocks, so some memory before and
 * behind it is included; returns where that ends. */
uintptr_t allow_writes(uintptr_t start, uintptr_t end);

const char *bare_too_long(void); /* why the watchdog came: of a limit of all 32 bits, the counter overflows with it */

#ifdef TRIAL_APART
#define BARE_NOT_ITS_OWN "a write to memory that is not the program's"
static inline int bare_trespass(uintptr_t where) { return where - BOARD_DATA_START < BOARD_DATA_BYTES || where - BOARD_CODE_START < BOARD_CODE_BYTES; }
#else
#define BARE_NOT_ITS_OWN ""
static inline int bare_trespass(uintptr_t where) { return (void)where, 0; }
#endif

/* Of the processor. */
void start_counting(void);
uint64_t counter_now(void);
void known_passes(uint32_t passes); /* a loop of two instructions */
void watchdog_start(uint64_t ticks);
void watchdog_stop(void);

#endif
