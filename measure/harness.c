/* The parts of measuring that need C: the timing loop, guarded buffers, and the report of a crashing candidate.
 * ansor.measure.harness loads it into the child process that runs one candidate. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

typedef void (*ansor_body)(void *ctx, long begin, long end);
typedef void (*ansor_parallel_for_t)(void *pool, ansor_body body, void *ctx, long n);
typedef void (*ansor_entry)(void *const *args, unsigned char *workspace, ansor_parallel_for_t parallel_for, void *pool);

static double read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void) { return read_clock(CLOCK_MONOTONIC); }

/* Fills the stack below the caller with NaN: the next function that is called finds it in variables that it does not initialise. */
__attribute__((noinline)) void ansor_spoil_stack(void) {
    volatile uint32_t below[1 << 16];
    for (size_t i = 0; i < sizeof below / sizeof *below; ++i) below[i] = 0x7fda5a5a;
}

/* Seconds that `number` calls in a row take: wall time, or CPU time of this thread. On a busy machine, wall time includes the work of other programs; but only
 * wall time includes how long several threads wait for each other. */
double ansor_seconds(ansor_entry entry, void *const *args, unsigned char *workspace, ansor_parallel_for_t parallel_for,
                     void *pool, long number, int wall) {
    errno = 0; /* a failed malloc sets it to ENOMEM, which distinguishes "out of memory" from other crashes */
    clockid_t clock = wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    double start = read_clock(clock);
    for (long i = 0; i < number; ++i) entry(args, workspace, parallel_for, pool);
    return read_clock(clock) - start;
}

/* Seconds of a fixed chain of dependent integer operations: its spread is the noise of this machine. */
double ansor_spin(long length) {
    volatile uint64_t sink;
    uint64_t x = 88172645463325252ull;
    double start = now();
    for (long i = 0; i < length; ++i) x = x * 6364136223846793005ull + 1442695040888963407ull;
    sink = x;
    (void)sink;
    return now() - start;
}

/* Writes through a buffer larger than the last-level cache, so that the next call finds none of its data there. */
void ansor_flush(volatile unsigned char *buffer, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) buffer[i]++;
}

/* Allocates `bytes` with at least `band` writable bytes on both sides, and `far` bytes beyond them that fault when touched.
 * band and far are multiples of the page size. Returns the address of the data (page-aligned), or 0. */
uintptr_t ansor_guarded(size_t bytes, size_t band, size_t far) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t middle = (band + bytes + band + page - 1) / page * page;
    unsigned char *base = mmap(NULL, far + middle + far, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return 0;
    if (mprotect(base + far, middle, PROT_READ | PROT_WRITE)) return 0;
    return (uintptr_t)(base + far + band);
}

static int note_fd = -1;
static uintptr_t stack_low, stack_high; /* where an overflowing stack faults */

static void note_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    int error = errno;
    uintptr_t address = (uintptr_t)info->si_addr;
    int memory_fault = number == SIGSEGV || number == SIGBUS;
    int overflow = memory_fault && address >= stack_low && address < stack_high;
    char text[160];
    int length = snprintf(text, sizeof text, "{\"fault\":{\"address\":%llu,\"no_memory\":%d,\"stack_overflow\":%d}}\n",
                          (unsigned long long)(memory_fault ? address : 0), error == ENOMEM, overflow);
    if (write(note_fd, text, (size_t)length) < 0) _exit(1);
    signal(number, SIG_DFL);
    raise(number); /* and die from it, as the parent expects */
}

/* From now on, a fatal signal writes one JSON line to `fd` before the process dies from it. */
void ansor_note_faults(int fd) {
    struct rlimit limit;
    uintptr_t here = (uintptr_t)&limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < here) {
        uintptr_t end = here - (uintptr_t)limit.rlim_cur;
        stack_low = end - ((uintptr_t)16 << 20);
        stack_high = end + ((uintptr_t)1 << 20);
    }
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    stack.ss_size = 1 << 16;
    stack.ss_sp = malloc(stack.ss_size); /* an overflowing stack has no room for a handler */
    if (stack.ss_sp) sigaltstack(&stack, NULL);
    note_fd = fd;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = note_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; ++i) sigaction(fatal[i], &action, NULL);
}

/* Has this process killed when its parent dies, so that a hanging candidate does not outlive a killed tuning run. */
void ansor_die_with_parent(void) {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}
