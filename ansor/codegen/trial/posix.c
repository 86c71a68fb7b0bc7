/* What the trial program takes from a system with files, clocks and virtual memory. */
#define _GNU_SOURCE
#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { FAR = 16 << 20, ROOMS = TRIAL_ARGUMENTS + 18, MARK = 23130 }; /* bytes that fault; buffers; a system call that no system has */

typedef struct {
    uintptr_t low, high;
    const char *name;
} room;

static room rooms[ROOMS];
static int room_count;
static uintptr_t stack_low, stack_high; /* where a stack that overflows faults */
static int file = -1;

void *system_room(uint64_t size, size_t band, const char *name) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t middle = (band + size + band + page - 1) / page * page;
    if (room_count == ROOMS || size > SIZE_MAX / 4 || middle > SIZE_MAX / 2) return NULL;
    unsigned char *base = mmap(NULL, (size_t)(FAR + middle + FAR), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    if (mprotect(base + FAR, (size_t)middle, PROT_READ | PROT_WRITE)) {
        munmap(base, (size_t)(FAR + middle + FAR));
        return NULL;
    }
    rooms[room_count++] = (room){(uintptr_t)base, (uintptr_t)base + (uintptr_t)(FAR + middle + FAR), name};
    return base + FAR + band;
}

void system_leave_room(void) {
    if (!room_count) return;
    const room *last = &rooms[--room_count];
    munmap((void *)last->low, (size_t)(last->high - last->low));
}

const void *system_file(const char *path, uint64_t *size) {
    struct stat found;
    const int opened = open(path, O_RDONLY | O_CLOEXEC);
    if (opened < 0 || fstat(opened, &found) || (uint64_t)found.st_size > SIZE_MAX / 2) return NULL;
    *size = (uint64_t)found.st_size;
    const void *bytes = *size ? mmap(NULL, (size_t)*size, PROT_READ, MAP_PRIVATE, opened, 0) : "";
    close(opened);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static int write_all(int to, const void *bytes, uint64_t size) {
    const char *rest = bytes;
    while (size) {
        const ssize_t wrote = write(to, rest, size < 1 << 20 ? (size_t)size : 1 << 20);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return 0;
        rest += wrote, size -= (uint64_t)wrote;
    }
    return 1;
}

int system_begin_file(const char *path) {
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return file >= 0;
}

int system_write_file(const void *bytes, uint64_t size) { return write_all(file, bytes, size); }

int system_end_file(void) { return close(file) == 0; }

size_t system_read(char *text, size_t most) {
    size_t length = 0;
    while (length < most) {
        const ssize_t got = read(0, text + length, most - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        length += (size_t)got;
    }
    return length;
}

void system_say(const char *text, size_t size) {
    if (!write_all(1, text, size)) _exit(3); /* nobody listens */
}

void system_end(void) { _exit(0); }

double system_seconds(int wall) {
    struct timespec now;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void system_mark(int number) { syscall(MARK, number); }

void system_watch(void) {}
const char *system_trespass(void) { return NULL; }

extern void *ansor_pool_create(int threads) __attribute__((weak));
extern void ansor_parallel_for(void *pool, trial_body body, void *ctx, long n) __attribute__((weak));

void *system_pool(int threads, trial_parallel_for *parallel_for) {
    if (!ansor_pool_create || !ansor_parallel_for) return NULL;
    *parallel_for = ansor_parallel_for;
    return ansor_pool_create(threads);
}

static void say_fault(const char *before, const char *name, const char *after) {
    const char *parts[] = {"{\"failure\": [\"", before, name, after, "\"]}\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) system_say(parts[i], strlen(parts[i]));
    _exit(0);
}

/* Names the buffer that was left, or the stack; any other fault ends the program as it would have. */
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    const uintptr_t address = (uintptr_t)info->si_addr;
    if (address >= stack_low && address < stack_high) say_fault("crash\", \"the stack overflowed", "", "");
    for (int i = 0; i < room_count; ++i)
        if (address >= rooms[i].low && address < rooms[i].high) say_fault("out_of_bounds\", \"touched memory far outside '", rooms[i].name, "'");
    signal(number, SIG_DFL);
}

static void watch_faults(void) {
    static char apart[1 << 14]; /* a stack that overflowed has no room for a handler */
    struct rlimit limit;
    const uintptr_t here = (uintptr_t)&limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < here) {
        const uintptr_t end = here - (uintptr_t)limit.rlim_cur;
        stack_low = end > FAR ? end - FAR : 0;
        stack_high = end + (1 << 20);
    }
    const stack_t stack = {.ss_sp = apart, .ss_size = sizeof apart};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* No file of what was in memory, and no end that comes after that of who waits for it. */
static void be_quiet(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

int trial_main(const char *mode, const char *kept);

int main(int count, char **words) {
    if (count != 3) return 2;
    be_quiet();
    watch_faults();
    return trial_main(words[1], words[2]);
}
