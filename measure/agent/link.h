/* Messages over a connection, with limits on their size and on the time they take.

       WORD ... SIZE\n   SIZE bytes   [32 bytes: the seal, if the connection was authenticated by a key]

   A seal is the HMAC-SHA256 of the sender, the number of messages sent before, and the message. No message is acted on before its seal is verified. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 256, WORDS = 8,
    PART_BYTES = 4096,        /* a pipe that is ready takes so much without blocking */
    MESSAGE_SECONDS = 30,     /* a message may take this long ... */
    SLOWEST_RATE = 16 << 10,  /* ... plus the time its bytes take at this rate (bytes per second) */
};

typedef enum { FINE, GONE, LATE, WRONG, STOPPED } Outcome;

typedef struct {
    int in, out, sealed;
    uint64_t sent, received;            /* messages */
    int64_t idle, patience;             /* most milliseconds between messages (below 0: unlimited), and for one message */
    int64_t deadline;
    Hmac key, opening, sealing;         /* the key of seals; the running seals of the message being read, and being written */
    char line[HEADER_BYTES];
    char *words[WORDS];
    int count;
    uint64_t size;
    unsigned char buffer[PART_BYTES];
    size_t start, end;
} Link;

static volatile sig_atomic_t stopping;

static void note_signal(int number) {
    if (number != SIGCHLD) stopping = 1;
}

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t now_ms(void) {
    return now_us() / 1000;
}

/* The only place that waits, and the only one that unblocks signals. `deadline` in milliseconds, below 0: none. Returns the number of ready descriptors. */
static int wait_for(struct pollfd *watched, nfds_t count, int64_t deadline) {
    sigset_t none;
    int64_t left = deadline - now_ms();
    if (left < 0) left = 0;
    const struct timespec time = {.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
    sigemptyset(&none);
    for (nfds_t i = 0; i < count; i++) watched[i].revents = 0;
    const int ready = ppoll(watched, count, deadline < 0 ? NULL : &time, &none);
    return ready > 0 ? ready : 0;
}

static Outcome wait_on(int descriptor, short events, int64_t deadline) {
    struct pollfd watched = {.fd = descriptor, .events = events};
    while (!wait_for(&watched, 1, deadline)) {
        if (stopping) return STOPPED;
        if (deadline >= 0 && now_ms() >= deadline) return LATE;
    }
    return watched.revents & POLLNVAL ? GONE : FINE;
}

static void open_link(Link *link, int in, int out, int64_t idle) {
    memset(link, 0, sizeof *link);
    link->in = in, link->out = out, link->idle = idle, link->patience = MESSAGE_SECONDS * 1000;
}

static void start_seal(const Link *link, Hmac *mac, char sender, uint64_t number) {
    unsigned char head[9] = {(unsigned char)sender};
    for (int i = 0; i < 8; i++) head[1 + i] = (unsigned char)(number >> (56 - 8 * i));
    *mac = link->key;
    hmac_add(mac, head, sizeof head);
}

static Outcome fill_buffer(Link *link, int64_t deadline) {
    const Outcome outcome = wait_on(link->in, POLLIN, deadline);
    if (outcome != FINE) return outcome;
    const ssize_t got = read(link->in, link->buffer, sizeof link->buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return FINE;
    if (got <= 0) return GONE;
    link->start = 0, link->end = (size_t)got;
    return FINE;
}

/* Receives up to `size` bytes, and waits if there are none yet; `*part` then points to them. */
static Outcome receive_part(Link *link, size_t size, const unsigned char **part, size_t *length) {
    while (link->start == link->end) {
        const Outcome outcome = fill_buffer(link, link->deadline);
        if (outcome != FINE) return outcome;
    }
    *length = link->end - link->start < size ? link->end - link->start : size;
    *part = link->buffer + link->start;
    link->start += *length;
    return FINE;
}

static Outcome receive_bytes(Link *link, void *place, size_t size) {
    const unsigned char *part;
    for (size_t length, done = 0; done < size; done += length) {
        const Outcome outcome = receive_part(link, size - done, &part, &length);
        if (outcome != FINE) return outcome;
        memcpy((unsigned char *)place + done, part, length);
        if (link->sealed) hmac_add(&link->opening, part, length);
    }
    return FINE;
}

/* Splits the line at single spaces; the last word is the size of the body. */
static Outcome split_line(Link *link) {
    char *at = link->line;
    for (link->count = 0; at; link->count++) {
        if (link->count == WORDS) return WRONG;
        link->words[link->count] = at;
        at = strchr(at, ' ');
        if (at) *at++ = 0;
        if (!*link->words[link->count]) return WRONG;
    }
    link->count--;
    return link->count >= 1 && number_of(link->words[link->count], (uint64_t)1 << 40, &link->size) ? FINE : WRONG;
}

/* Receives the first line of the next message: `count` words, and the `size`. */
static Outcome receive_header(Link *link) {
    link->deadline = link->idle < 0 ? -1 : now_ms() + link->idle;
    while (link->start == link->end) {
        const Outcome outcome = fill_buffer(link, link->deadline);
        if (outcome != FINE) return outcome;
    }
    link->deadline = now_ms() + link->patience;
    if (link->sealed) start_seal(link, &link->opening, 'C', link->received);
    for (size_t length = 0; length < HEADER_BYTES; length++) {
        const Outcome outcome = receive_bytes(link, link->line + length, 1);
        if (outcome != FINE) return outcome;
        if (link->line[length] == '\n') {
            link->line[length] = 0;
            return split_line(link);
        }
        if (link->line[length] < ' ' || link->line[length] > '~') return WRONG;
    }
    return WRONG;
}

/* Extends the deadline by the time for the body. Call it once the body's size is known to be valid. */
static void allow_body(Link *link) {
    link->deadline += (int64_t)(link->size / SLOWEST_RATE) * 1000;
}

/* Verifies the seal. Call it after the body was read, before acting on the message. */
static Outcome receive_end(Link *link) {
    unsigned char wanted[DIGEST_BYTES], found[DIGEST_BYTES];
    link->received++;
    if (!link->sealed) return FINE;
    hmac_end(&link->opening, wanted);
    const unsigned char *part;
    for (size_t length, done = 0; done < sizeof found; done += length) {
        const Outcome outcome = receive_part(link, sizeof found - done, &part, &length);
        if (outcome != FINE) return outcome;
        memcpy(found + done, part, length);
    }
    return same_digest(wanted, found) ? FINE : WRONG;
}

static Outcome write_bytes(Link *link, const void *data, size_t size) {
    const char *bytes = data;
    while (size > 0) {
        const Outcome outcome = wait_on(link->out, POLLOUT, link->deadline);
        if (outcome != FINE) return outcome;
        const ssize_t put = write(link->out, bytes, size < PART_BYTES ? size : PART_BYTES);
        if (put < 0 && errno != EINTR && errno != EAGAIN) return GONE;
        if (put > 0) bytes += put, size -= (size_t)put;
    }
    return FINE;
}

static Outcome send_bytes(Link *link, const void *data, size_t size) {
    if (link->sealed) hmac_add(&link->sealing, data, size);
    return write_bytes(link, data, size);
}

/* Sends the first line of an answer, with the size appended; `send_bytes` and `send_end` follow. */
static Outcome send_header(Link *link, const Text *words, uint64_t size) {
    Text line = *words;
    link->deadline = now_ms() + (MESSAGE_SECONDS + (int64_t)(size / SLOWEST_RATE)) * 1000;
    if (link->sealed) start_seal(link, &link->sealing, 'A', link->sent);
    add(&line, " ");
    add_number(&line, size);
    add(&line, "\n");
    return send_bytes(link, line.data, line.length);
}

static Outcome send_end(Link *link) {
    unsigned char seal[DIGEST_BYTES];
    link->sent++;
    if (!link->sealed) return FINE;
    hmac_end(&link->sealing, seal);
    return write_bytes(link, seal, sizeof seal);
}

static Outcome send_text(Link *link, const char *words, const Text *body) {
    Text line = {.length = 0};
    add(&line, words);
    Outcome outcome = send_header(link, &line, body ? body->length : 0);
    if (outcome == FINE && body) outcome = send_bytes(link, body->data, body->length);
    return outcome == FINE ? send_end(link) : outcome;
}

static Outcome send_error(Link *link, const char *kind, const char *why, const char *what) {
    Text line = {.length = 0}, body = {.length = 0};
    add(&line, "error ");
    add(&line, kind);
    add(&body, why);
    if (what && *what) {
        add(&body, ": ");
        add(&body, what);
    }
    line.data[line.length] = 0;
    return send_text(link, line.data, &body);
}
