/* The monitor inside of the process that tests it: bytes in, bytes out, nothing waits. A program here counts its runs, in memory and beside it. */
#include "monitor.h"

#include "arch.h"
#include "board.h"

#include <string.h>

enum { MEMORY = 1 << 14, OUT = 1 << 18 };

sigjmp_buf arch_here;
volatile uint8_t arch_armed;
volatile uint32_t arch_cause;
volatile uintptr_t arch_pc;

static uint8_t memory[MEMORY] __attribute__((aligned(16)));
static uint8_t out[OUT];
static const uint8_t *in;
static size_t in_left, out_put;
static uint32_t runs, seed;

void arch_setup(void) {}
void arch_after(void) { arch_armed = 0; }
void arch_barrier(void) {}
unsigned arch_jump(uint8_t code[16], uintptr_t at) { return (void)at, memset(code, 0xEE, 16), 16; }

void arch_run(uintptr_t entry, uint32_t milliseconds)
{
    uint32_t count;
    (void)milliseconds;
    runs++;
    memcpy(&count, (void *)entry, 4);
    count++;
    memcpy((void *)entry, &count, 4);
    siglongjmp(arch_here, CAME_STOP);
}

void monitor_setup(void) {}
void monitor_wait(void) {}
void monitor_flush(void) {}
int monitor_getc(void) { return in_left ? (in_left--, *in++) : -1; }
int monitor_putc(int byte) { return out_put < OUT ? out[out_put++] = (uint8_t)byte : 0, 1; }
uint32_t monitor_now(void) { return seed; }

void monitor_reset(void)
{
    memset(memory, 0xA5, sizeof memory);
    seed++;
    monitor_start();
}

const struct board_facts *monitor_facts(void)
{
    static const struct board_facts facts = {"looped", memory, memory + MEMORY, BOARD_RESETS};
    return &facts;
}

void looped_begin(uint32_t from)
{
    seed = from;
    out_put = runs = 0;
    monitor_reset();
}

size_t looped_feed(const uint8_t *data, size_t size, uint8_t *answer)
{
    in = data;
    in_left = size;
    out_put = 0;
    while (in_left) monitor_step();
    memcpy(answer, out, out_put);
    return out_put;
}

uint32_t looped_runs(void) { return runs; }
