/* The agent: runs programs of `ansor` on this machine for the process that started it, or over TCP for peers that have the key.

       agent [-store DIR] [-space MB] [-wait SECONDS] [-with COMMAND] [-listen [HOST:]PORT -key FILE]

   Without -listen it uses standard input and output. It does not know what the programs compute. See docs/agents.md. */

#define _GNU_SOURCE
#include "memory.h"
#include "sha256.h"
#include "text.h"
#include "link.h"
#include "store.h"
#include "job.h"
#include "session.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { SESSIONS = 8, CLOSING_MS = 1000, LARGEST_MB = 1 << 20 };

typedef struct {
    const char *listen, *key_file, *store;
    char folder[1000], emulator[1000];
    unsigned char key[KEY_MOST];
    size_t key_size;
    Session session;
} Agent;

static Agent agent;

static const char USAGE[] =
    "agent [-store DIR] [-space MB] [-wait SECONDS] [-with COMMAND] [-listen [HOST:]PORT -key FILE]\n\n"
    "Runs programs of ansor on this machine. Without -listen it speaks on standard input and output.\n"
    "  -store DIR       where files are (default: ansor-agent-UID in $TMPDIR or /tmp); each runs one job at a time\n"
    "  -space MB        limit for all files together (default 256)\n"
    "  -wait SECONDS    how long a job waits for the one before it (default 60)\n"
    "  -with COMMAND    prefix for every job's command, such as an emulator\n"
    "  -listen [HOST:]PORT   TCP, on the loopback interface if no HOST is given\n"
    "  -key FILE        the shared key: 16 bytes or more, in a file that nobody else can read\n";

static void say(int descriptor, const char *text) {
    if (write(descriptor, text, strlen(text)) < 0) return;
}

/* Prints a message and exits. */
static void refuse(const char *why, const char *what) {
    say(2, "agent: ");
    say(2, why);
    if (what) say(2, ": "), say(2, what);
    say(2, "\n");
    _exit(2);
}

static void read_key(const char *path) {
    struct stat found;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &found)) refuse("the key cannot be read", path);
    if (!S_ISREG(found.st_mode)) refuse("the key is not a regular file", path);
    if (found.st_mode & 077) refuse("others can read or write the key; run chmod 600 on it", path);
    if (found.st_uid != geteuid() && found.st_uid != 0) refuse("the key belongs to another user", path);
    const ssize_t got = read(file, agent.key, sizeof agent.key);
    close(file);
    agent.key_size = got > 0 ? (size_t)got : 0;
    if (agent.key_size == sizeof agent.key) refuse("the key is longer than 4095 bytes", path);
    while (agent.key_size > 0 && strchr(" \t\r\n", agent.key[agent.key_size - 1]) && agent.key[agent.key_size - 1]) agent.key_size--;
    if (agent.key_size < KEY_LEAST) refuse("the key has fewer than 16 bytes", path);
}

static void split_command(char *command) {
    Running *running = &agent.session.running;
    running->words = 0;
    for (char *end = command; *end; command = end) {
        command += strspn(command, " ");
        end = command + strcspn(command, " ");
        if (end > command && running->words == BEFORE) refuse("-with has more than 16 words", NULL);
        if (end > command) running->before[running->words++] = command;
        if (*end) *end++ = 0;
    }
    if (running->words == 0) refuse("-with needs a command", NULL);
    if (running->before[0][0] == '/' || !strchr(running->before[0], '/')) return;
    Text whole = {.length = 0};    /* an absolute path, as jobs run in their own folders */
    if (syscall(SYS_getcwd, agent.emulator, sizeof agent.emulator) < 1) refuse("the working folder has no name", strerror(errno));
    add(&whole, agent.emulator), add(&whole, "/"), add(&whole, running->before[0]);
    if (whole.length >= sizeof agent.emulator) refuse("-with names a program whose path is too long", running->before[0]);
    memcpy(agent.emulator, whole.data, whole.length);
    agent.emulator[whole.length] = 0;
    running->before[0] = agent.emulator;
}

static uint64_t number_option(const char *name, const char *value, uint64_t most) {
    uint64_t number = 0;
    if (!number_of(value, most, &number) || number < 1) refuse(name, "needs a whole number above 0");
    return number;
}

static void read_option(const char *name, char *value) {
    if (!value) refuse("an option needs a value", name);
    if (strcmp(name, "-listen") == 0) agent.listen = value;
    else if (strcmp(name, "-key") == 0) agent.key_file = value;
    else if (strcmp(name, "-store") == 0) agent.store = value;
    else if (strcmp(name, "-with") == 0) split_command(value);
    else if (strcmp(name, "-space") == 0) agent.session.store.space = number_option(name, value, LARGEST_MB) << 20;
    else if (strcmp(name, "-wait") == 0) agent.session.running.patience = (int64_t)number_option(name, value, LONGEST_SECONDS) * 1000;
    else refuse("there is no such option; agent -help lists them", name);
}

static void read_options(int count, char **words) {
    agent.session.store.space = (uint64_t)256 << 20;
    agent.session.running.patience = 60000;
    for (int i = 1; i < count; i += 2) {
        if (strcmp(words[i], "-help") == 0 || strcmp(words[i], "--help") == 0) say(1, USAGE), _exit(0);
        if (strcmp(words[i], "-version") == 0) say(1, "agent, protocol " VERSION "\n"), _exit(0);
        read_option(words[i], words[i + 1]);
    }
    agent.session.store.largest = agent.session.store.space / 4;
    agent.session.store.since = agent.session.store.space;    /* scan the folder when the first file comes */
    if (agent.listen && !agent.key_file) refuse("-listen needs -key FILE", NULL);
    if (agent.key_file && !agent.listen) refuse("-key is for -listen; standard input needs none", NULL);
    if (agent.key_file) read_key(agent.key_file);
}

static void open_store(void) {
    if (!agent.store) {
        const char *among = getenv("TMPDIR");
        Text text = {.length = 0};
        add(&text, among && *among ? among : "/tmp");
        add(&text, "/ansor-agent-");
        add_number(&text, geteuid());
        if (text.length >= sizeof agent.folder) refuse("TMPDIR is too long; name a folder with -store", among);
        memcpy(agent.folder, text.data, text.length);
        agent.folder[text.length] = 0;
        agent.store = agent.folder;
    }
    const char *wrong = enter_store(agent.store);
    if (wrong) refuse(wrong, agent.store);
    remove_left_over();
}

static void handle_signals(void) {
    struct sigaction action = {.sa_handler = note_signal};
    sigset_t held;
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], &action, NULL);
        sigaddset(&held, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &held, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Parses a dotted IPv4 address, or localhost. */
static int read_host(const char *text, size_t length, uint32_t *host) {
    char word[16] = "";
    *host = INADDR_LOOPBACK;
    if (length == 9 && strncmp(text, "localhost", length) == 0) return 1;
    if (length >= sizeof word) return 0;
    memcpy(word, text, length);
    char *at = word;
    *host = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t part;
        char *dot = strchr(at, '.');
        if ((dot != NULL) != (i < 3)) return 0;
        if (dot) *dot = 0;
        if (!number_of(at, 255, &part)) return 0;
        *host = *host << 8 | (uint32_t)part;
        if (dot) at = dot + 1;
    }
    return 1;
}

static int open_port(void) {
    const char *colon = strrchr(agent.listen, ':');
    const int on = 1, descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t host = INADDR_LOOPBACK;
    uint64_t port = 0;
    if (!number_of(colon ? colon + 1 : agent.listen, 65535, &port)) refuse("-listen needs a port, such as 9190", agent.listen);
    if (colon && !read_host(agent.listen, (size_t)(colon - agent.listen), &host)) refuse("-listen needs an address such as 127.0.0.1:9190", agent.listen);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {.s_addr = htonl(host)}};
    socklen_t size = sizeof address;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (descriptor < 0 || bind(descriptor, (void *)&address, size) || listen(descriptor, 16) || getsockname(descriptor, (void *)&address, &size))
        refuse("cannot listen", strerror(errno));
    Text text = {.length = 0};
    add(&text, "listening on port "), add_number(&text, ntohs(address.sin_port)), add(&text, "\n");
    text.data[text.length] = 0;
    say(1, text.data);
    return descriptor;
}

/* Lets the last answer arrive: closing a socket with unread bytes would discard it. */
static void close_gently(int descriptor) {
    char part[PART_BYTES];
    const int64_t deadline = now_ms() + CLOSING_MS;
    shutdown(descriptor, SHUT_WR);
    while (wait_on(descriptor, POLLIN, deadline) == FINE && read(descriptor, part, sizeof part) > 0 && now_ms() < deadline) {}
    close(descriptor);
}

static void serve_peer(int descriptor) {
    const int on = 1;
    Link *link = &agent.session.link;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    open_link(link, descriptor, descriptor, PROOF_SECONDS * 1000);
    link->patience = PROOF_SECONDS * 1000;
    const Outcome outcome = prove(link, agent.key, agent.key_size);
    if (outcome == WRONG) send_error(link, "protocol", "that is not a message of this protocol; the connection ends", NULL);
    link->idle = IDLE_SECONDS * 1000, link->patience = MESSAGE_SECONDS * 1000;
    if (outcome == FINE) serve(&agent.session);
    close_gently(descriptor);
}

/* Forks a process for each session, so that a failure in one does not affect another. Returns its pid; 0 in the session itself. */
static pid_t fork_session(void) {
    const pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (getppid() != parent) _exit(1);
    return 0;
}

static int reap(void) {
    int count = 0;
    while (waitpid(-1, NULL, WNOHANG) > 0) count++;
    return count;
}

static void accept_peer(int port, int *sessions) {
    const int descriptor = accept4(port, NULL, NULL, SOCK_CLOEXEC);
    if (descriptor < 0) return;
    const pid_t child = *sessions < SESSIONS ? fork_session() : -1;
    if (child == 0) {
        close(port);
        serve_peer(descriptor);
        _exit(0);
    }
    if (child > 0) {
        ++*sessions;
    } else {
        Link *link = &agent.session.link;
        open_link(link, descriptor, descriptor, 0);
        send_error(link, "busy", "too many peers are connected", NULL);
    }
    close(descriptor);
}

static void serve_port(void) {
    const int port = open_port();
    struct pollfd watched = {.fd = port, .events = POLLIN};
    int sessions = 0;
    fcntl(port, F_SETFL, O_NONBLOCK);
    while (!stopping) {
        const int ready = wait_for(&watched, 1, -1);
        sessions -= reap();
        if (ready) accept_peer(port, &sessions);
    }
    close(port);
}

/* Returns the exit status. */
static int serve_standard(void) {
    int status = 0;
    const pid_t child = fork_session();
    if (child == 0) {
        const int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (in < 0 || out < 0 || nothing < 0) _exit(1);
        dup2(nothing, 0), dup2(nothing, 1);
        open_link(&agent.session.link, in, out, -1);
        serve(&agent.session);
        _exit(0);
    }
    if (child < 0) refuse("no process can be started", strerror(errno));
    close(0), close(1);
    while (waitpid(child, &status, WNOHANG) == 0) {
        wait_for(NULL, 0, -1);
        if (stopping) kill(child, SIGTERM), stopping = 0;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Opens missing standard descriptors. Otherwise files opened later would get their numbers, and jobs would write to those files. */
static void fill_standard(void) {
    for (int i = 0; i <= 2; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR) != i) _exit(2);
}

int main(int count, char **words) {
    fill_standard();
    umask(077);
    agent.session.start = now_us();
    read_options(count, words);
    open_store();
    handle_signals();
    if (!agent.listen) return serve_standard();
    serve_port();
    return 0;
}
