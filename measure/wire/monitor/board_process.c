/* A process as a board: its line is standard input and output, its memory a region that programs can run in. */
#define _GNU_SOURCE
#include "board_process.h"
#include "board.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MEGABYTE = 1 << 20 };
static uint8_t *memory;
static size_t memory_bytes = MEGABYTE;
static char **arguments;
static uint8_t in[4096], out[4096];
static ssize_t in_put, in_taken;
static size_t out_put;

void monitor_setup(void)
{
    /* The same address in every process, so that programs linked for it stay valid after a reset. */
    memory = mmap((void *)0x40000000, memory_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("no memory for programs");
        exit(1);
    }
}

static int ready(int wait)
{
    struct pollfd line = {.fd = 0, .events = POLLIN};
    return poll(&line, 1, wait) > 0;
}

int monitor_getc(void)
{
    if (in_taken == in_put) {
        if (!ready(0)) return -1;
        in_taken = 0;
        in_put = read(0, in, sizeof in);
        if (in_put < 0 && (errno == EINTR || errno == EAGAIN)) return in_put = 0, -1;
        if (in_put <= 0) exit(0); /* the host has gone */
    }
    return in[in_taken++];
}

void monitor_flush(void)
{
    for (size_t done = 0; done < out_put;) {
        ssize_t count = write(1, out + done, out_put - done);
        if (count < 0 && errno != EINTR && errno != EAGAIN) exit(0);
        done += count > 0 ? (size_t)count : 0;
    }
    out_put = 0;
}

int monitor_putc(int byte)
{
    if (out_put == sizeof out) monitor_flush();
    out[out_put++] = (uint8_t)byte;
    return 1;
}

void monitor_wait(void)
{
    if (in_taken == in_put) ready(-1);
}

uint32_t monitor_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_nsec ^ (uint32_t)getpid() << 16;
}

void monitor_reset(void) { execv("/proc/self/exe", arguments); }

const struct board_facts *monitor_facts(void)
{
    static struct board_facts facts = {"process", 0, 0, BOARD_RESETS | BOARD_HALTS};
    facts.ram_start = memory;
    facts.ram_end = memory + memory_bytes;
    return &facts;
}

void process_given(int count, char **given)
{
    arguments = given;
    if (count > 1) memory_bytes = (size_t)strtoul(given[1], NULL, 10) * MEGABYTE;
}
