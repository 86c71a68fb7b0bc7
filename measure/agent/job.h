/* Runs a stored program in a child with limits, and reports how it ended. */

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
    OUT_BYTES = 64 << 10, ERR_BYTES = 2 << 10, RECIPE_BYTES = 256 << 10,
    OPEN_FILES = 64, BEFORE = 16,    /* descriptors of a job; words of -with COMMAND */
    EMULATOR_BYTES = 1 << 30,        /* memory for the emulator itself */
    LONGEST_SECONDS = 86400, LOOK_MS = 20,
    STRAYS_MS = 2000,                /* time for killed leftovers of a job to end: those held by a driver or a tracer do not */
    DRAIN_BYTES = 1 << 20,           /* most bytes to read from a pipe after its program has ended */
};

typedef struct {
    char *before[BEFORE + 1];
    int words;
    int64_t patience;    /* milliseconds to wait for another job to end */
} Running;

typedef struct {
    char program[NAME_BYTES], argument[NAME_BYTES], folder[NAME_BYTES];
    const char *mode;
    uint64_t ms, memory, file_bytes;    /* ms: of wall time */
} Job;

typedef struct {
    unsigned char out[OUT_BYTES], err[ERR_BYTES];
    size_t out_size, err_size;
    int cut, late, status, start_error;
    int64_t wall_us, cpu_us, peak_kb;
} Ended;

static Ended ended;    /* too large for small stacks; only one job runs at a time */
static unsigned char recipe[RECIPE_BYTES];

static int processors(void) {
    unsigned long set[128] = {0};    /* one bit for each processor */
    const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof set, set);
    int count = 0;
    for (long i = 0; i < bytes / (long)sizeof *set; i++) count += __builtin_popcountl(set[i]);
    return count > 0 ? count : 1;
}

static void limit(int what, uint64_t most) {
    const uint64_t value[2] = {most, most};
    syscall(SYS_prlimit64, 0, what, value, NULL);    /* the C library's setrlimit would link thread locks */
}

static void set_limits(const Job *job, const Running *running) {
    uint64_t memory = job->memory + (running->words ? EMULATOR_BYTES : 0);
    if (sizeof(void *) == 4 && memory > 0x7fffffff) memory = 0x7fffffff;
    /* An emulator reserves address space that it never uses, so limit its data instead. */
    limit(running->words ? RLIMIT_DATA : RLIMIT_AS, memory);
    limit(RLIMIT_CPU, (job->ms / 1000 + 2) * (uint64_t)processors());
    limit(RLIMIT_FSIZE, job->file_bytes);
    limit(RLIMIT_NOFILE, OPEN_FILES);
    limit(RLIMIT_CORE, 0);
}

/* In the child: does not return. `report` gets the error number if the program cannot be started. */
static void become(const Job *job, const Running *running, int out, int err, int report) {
    char *words[BEFORE + 4], program[NAME_BYTES], mode[16], *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=.", "TMPDIR=.", NULL};
    sigset_t none;
    int count = 0;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_DFL), signal(SIGCHLD, SIG_DFL), signal(SIGTERM, SIG_DFL), signal(SIGINT, SIG_DFL), signal(SIGHUP, SIG_DFL);
    for (; count < running->words; count++) words[count] = running->before[count];
    join(program, "../", job->program);
    join(mode, job->mode, "");
    words[count++] = program, words[count++] = mode, words[count++] = (char *)job->argument, words[count] = NULL;
    if (chdir(job->folder) == 0) {
        const int in = open("recipe", O_RDONLY | O_CLOEXEC);
        if (in >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2) {
            set_limits(job, running);
            sigprocmask(SIG_SETMASK, &none, NULL);
            if (running->words) execvpe(words[0], words, environment);
            else execve(words[0], words, environment);
        }
    }
    const int error = errno;
    if (write(report, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

/* Kills processes that left the job's group: they became our children when their parents ended. */
static void kill_strays(void) {
    char name[NAME_BYTES], list[512];
    Text path = {.length = 0};
    add(&path, "/proc/self/task/");
    add_number(&path, (uint64_t)syscall(SYS_gettid));
    add(&path, "/children");
    path.data[path.length] = 0;
    join(name, path.data, "");
    for (const int64_t deadline = now_ms() + STRAYS_MS;;) {
        const int file = open(name, O_RDONLY | O_CLOEXEC);
        const ssize_t got = file < 0 ? 0 : read(file, list, sizeof list - 1);
        if (file >= 0) close(file);
        if (got <= 0) return;
        list[got] = 0;
        for (char *at = list, *end; (end = strchr(at, ' ')); at = end + 1) {    /* the last number may be cut off: the next pass reads it whole */
            uint64_t process;
            *end = 0;
            if (number_of(at, INT32_MAX, &process) && process > 1) kill((pid_t)process, SIGKILL);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
        if (now_ms() >= deadline) return;
        wait_for(NULL, 0, now_ms() + 1);
    }
}

/* Keeps the first bytes of standard output and the last bytes of standard error. Returns whether there may be more. */
static int take_output(int pipe, int is_error) {
    unsigned char part[PART_BYTES];
    const ssize_t got = read(pipe, part, is_error ? ERR_BYTES / 2 : sizeof part);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
    if (got <= 0) return 0;
    const size_t size = (size_t)got;
    if (is_error) {
        const size_t over = ended.err_size + size > ERR_BYTES ? ended.err_size + size - ERR_BYTES : 0;
        memmove(ended.err, ended.err + over, ended.err_size - over);
        memcpy(ended.err + ended.err_size - over, part, size);
        ended.err_size += size - over;
        return 1;
    }
    const size_t room = OUT_BYTES - ended.out_size, kept = size < room ? size : room;
    memcpy(ended.out + ended.out_size, part, kept);
    ended.out_size += kept;
    if (kept < size) ended.cut = 1;
    return 1;
}

/* Waits until the child ends, its time is up, or the peer is gone. Afterwards, the child and all processes it started are gone. */
static Outcome attend(const Link *link, pid_t child, int out, int err, const Job *job) {
    const int64_t begin = now_us(), deadline = begin / 1000 + (int64_t)job->ms;
    struct pollfd watched[3] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}, {.fd = link->in, .events = POLLRDHUP}};
    struct rusage use;
    Outcome outcome = FINE;
    int done = 0;
    while (!done && outcome == FINE && !ended.late) {
        wait_for(watched, 3, deadline);
        for (int i = 0; i < 2; i++)
            if (watched[i].revents && !take_output(watched[i].fd, i)) watched[i].fd = -1;
        siginfo_t info = {.si_pid = 0};
        done = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
        if (stopping) outcome = STOPPED;
        else if (watched[2].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) outcome = GONE;
        ended.late = !done && now_ms() >= deadline;
    }
    ended.wall_us = now_us() - begin;
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    while (wait4(child, &ended.status, 0, &use) < 0 && errno == EINTR) {}
    ended.cpu_us = (int64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 + use.ru_utime.tv_usec + use.ru_stime.tv_usec;
    ended.peak_kb = use.ru_maxrss;
    kill_strays();
    for (int i = 0; i < 2; i++)
        for (int left = DRAIN_BYTES / PART_BYTES; left > 0 && watched[i].fd >= 0 && take_output(watched[i].fd, i); left--) {}
    return outcome;
}

static Outcome start_and_attend(const Link *link, const Job *job, const Running *running) {
    int out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1};
    Outcome outcome = FINE;
    memset(&ended, 0, sizeof ended);
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) ended.start_error = errno;
    const pid_t child = ended.start_error ? -1 : fork();
    if (child == 0) become(job, running, out[1], err[1], report[1]);
    if (child < 0 && !ended.start_error) ended.start_error = errno;
    if (out[1] >= 0) close(out[1]);
    if (err[1] >= 0) close(err[1]);
    if (report[1] >= 0) close(report[1]);
    if (child > 0) {
        int error;
        setpgid(child, child);    /* the child does the same: either may be first */
        if (read(report[0], &error, sizeof error) == sizeof error) ended.start_error = error;
        fcntl(out[0], F_SETFL, O_NONBLOCK), fcntl(err[0], F_SETFL, O_NONBLOCK);
        outcome = attend(link, child, out[0], err[0], job);
    }
    if (out[0] >= 0) close(out[0]);
    if (err[0] >= 0) close(err[0]);
    if (report[0] >= 0) close(report[0]);
    return outcome;
}

/* Takes the lock that is held while a job runs. Returns -1 if another job keeps it too long, or if the peer is gone (`*outcome`). */
static int take_turn(const Link *link, int64_t patience, Outcome *outcome) {
    const int lock = open("lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    const int64_t deadline = now_ms() + patience;
    struct pollfd peer = {.fd = link->in, .events = POLLRDHUP};
    *outcome = FINE;
    while (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB)) {
        wait_for(&peer, 1, now_ms() + LOOK_MS);
        if (stopping) *outcome = STOPPED;
        else if (peer.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) *outcome = GONE;
        if (*outcome == FINE && now_ms() < deadline) continue;
        close(lock);
        return -1;
    }
    return lock;
}

/* Returns NULL, or what went wrong. */
static const char *make_folder(const Job *job, uint64_t size) {
    char name[NAME_BYTES];
    remove_all(job->folder);
    if (mkdir(job->folder, 0700)) return strerror(errno);
    join(name, job->folder, "/recipe");
    const int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return strerror(errno);
    const int written = write_file(file, recipe, (size_t)size);
    return close(file) == 0 && written ? NULL : strerror(errno ? errno : ENOSPC);
}

/* Moves the job's output to the kept file. */
static void keep_output(const Job *job, const char *kept) {
    char written[2 * NAME_BYTES];
    struct stat found;
    join(written, job->folder, "/out");
    if (fstatat(AT_FDCWD, written, &found, AT_SYMLINK_NOFOLLOW) || !S_ISREG(found.st_mode)) return;
    chmod(written, 0400);
    rename(written, kept);
}
