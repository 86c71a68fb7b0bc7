/* The requests of a peer, and their answers.

       hello VERSION                               hello VERSION, and lines `NAME VALUE` about this machine
       have file DIGEST | have kept NAME           yes | no
       put DIGEST, and the file                    put
       run DIGEST reference|trial KEPT MS MEMORY FILE-BYTES, and the recipe
                                                   ran exit|signal|timeout CODE WALL-US CPU-US PEAK-KB CUT OUT-BYTES, and both outputs
       drop file DIGEST | drop kept NAME           dropped
       anything                                    error KIND, and a sentence

   KEPT names the file that keeps a reference's output, or that a trial is compared with; `-`: none. */

#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#define VERSION "1"

enum { PROOF_SECONDS = 10, IDLE_SECONDS = 3600, KEY_LEAST = 16, KEY_MOST = 4096 };

typedef struct {
    Link link;
    Store store;
    Running running;
    int greeted;
    int64_t start;    /* start time of the listening process, which identifies the agent */
} Session;

/* Adds `name` and the text that follows the first `head` in a file, up to the end of its line. */
static void add_line_of(Text *text, const char *path, const char *head, const char *name) {
    char content[8192];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, content, sizeof content - 1);
    if (file >= 0) close(file);
    content[got > 0 ? got : 0] = 0;
    char *at = strstr(content, head);
    if (got <= 0 || !at) return;
    at += strlen(head);
    at += strspn(at, " \t:");
    at[strcspn(at, "\n")] = 0;
    add(text, name);
    for (int i = 0; at[i] && i < 100; i++) add_bytes(text, at[i] >= ' ' && at[i] <= '~' ? at + i : "?", 1);
    add(text, "\n");
}

static void add_value(Text *text, const char *name, uint64_t value) {
    add(text, name);
    add_number(text, value);
    add(text, "\n");
}

static Outcome say_hello(Session *session) {
    struct utsname system;
    struct sysinfo memory;
    Text body = {.length = 0};
    if (strcmp(session->link.words[1], VERSION)) return send_error(&session->link, "version", "this agent speaks version " VERSION, NULL), GONE;
    session->greeted = 1;
    if (uname(&system) == 0) {
        add(&body, "machine "), add(&body, system.machine);
        add(&body, "\nsystem "), add(&body, system.sysname), add(&body, " "), add(&body, system.release), add(&body, "\n");
    }
    add_value(&body, "processors ", (uint64_t)processors());
    if (sysinfo(&memory) == 0) add_value(&body, "memory ", (uint64_t)memory.totalram * memory.mem_unit);
    add_value(&body, "largest ", session->store.largest);
    add_value(&body, "wait ", (uint64_t)session->running.patience / 1000);
    add_value(&body, "start ", (uint64_t)session->start);
    add_line_of(&body, "/proc/sys/kernel/random/boot_id", "", "boot ");
    add_line_of(&body, "/proc/cpuinfo", "model name", "model ");
    add_line_of(&body, "/proc/cpuinfo", "uarch", "model ");
    add_line_of(&body, "/proc/cpuinfo", "CPU implementer", "implementer ");
    add_line_of(&body, "/proc/cpuinfo", "CPU part", "part ");
    add_line_of(&body, "/proc/device-tree/model", "", "board ");
    for (int i = 0; i < session->running.words; i++) add(&body, i ? " " : "with "), add(&body, session->running.before[i]);
    if (session->running.words) add(&body, "\n");
    return send_text(&session->link, "hello " VERSION, &body);
}

static Outcome send_ended(Link *link) {
    Text line = {.length = 0};
    const int signal = WIFSIGNALED(ended.status);
    Outcome outcome;
    add(&line, ended.late ? "ran timeout " : signal ? "ran signal " : "ran exit ");
    add_number(&line, (uint64_t)(ended.late ? 0 : signal ? WTERMSIG(ended.status) : WEXITSTATUS(ended.status)));
    const uint64_t numbers[] = {(uint64_t)ended.wall_us, (uint64_t)ended.cpu_us, (uint64_t)ended.peak_kb, (uint64_t)ended.cut, ended.out_size};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) add(&line, " "), add_number(&line, numbers[i]);
    outcome = send_header(link, &line, ended.out_size + ended.err_size);
    if (outcome == FINE) outcome = send_bytes(link, ended.out, ended.out_size);
    if (outcome == FINE) outcome = send_bytes(link, ended.err, ended.err_size);
    return outcome == FINE ? send_end(link) : outcome;
}

/* The caller holds the job lock. `kept`: a file in the store, or ''. */
static Outcome run_in_folder(Session *session, Job *job, const char *kept) {
    const int is_reference = strcmp(job->mode, "reference") == 0;
    join_number(job->folder, "job-", (uint64_t)getpid());
    if (is_reference) join(job->argument, "out", "");
    else join(job->argument, *kept ? "../" : "-", kept);
    const char *trouble = make_folder(job, session->link.size);
    Outcome outcome = trouble ? FINE : start_and_attend(&session->link, job, &session->running);
    if (!trouble && outcome == FINE && is_reference && *kept && !ended.start_error && !ended.late && ended.status == 0) {
        make_room(&session->store, job->file_bytes < session->store.space / 16 ? job->file_bytes : session->store.space / 16);
        keep_output(job, kept);
    }
    remove_all(job->folder);
    if (outcome != FINE) return outcome;
    if (trouble) return send_error(&session->link, "machine", "the folder of the job cannot be made", trouble);
    if (ended.start_error == ENOEXEC) return send_error(&session->link, "start", "this machine cannot run the program", strerror(ENOEXEC));
    if (ended.start_error) return send_error(&session->link, "machine", "the program cannot be started", strerror(ended.start_error));
    return send_ended(&session->link);
}

static Outcome run_job(Session *session, Job *job, const char *kept) {
    Link *link = &session->link;
    Outcome outcome;
    const int lock = take_turn(link, session->running.patience, &outcome);
    if (outcome != FINE) return outcome;
    if (lock < 0) return send_error(link, "busy", "another job runs for longer than this one waits", NULL);
    if (!touch(job->program)) outcome = send_error(link, "missing", "the program is not stored here", "file");
    else if (strcmp(job->mode, "trial") == 0 && *kept && !touch(kept)) outcome = send_error(link, "missing", "the output to compare with is not kept here", "kept");
    else outcome = run_in_folder(session, job, kept);
    close(lock);
    return outcome;
}

/* run DIGEST MODE KEPT MS MEMORY FILE-BYTES SIZE */
static Outcome read_job(Session *session) {
    Link *link = &session->link;
    char **words = link->words, kept[NAME_BYTES] = "";
    Job job = {.mode = words[2]};
    if (!stored_name("file", words[1], job.program)) return WRONG;
    if (strcmp(job.mode, "reference") && strcmp(job.mode, "trial")) return WRONG;
    if (strcmp(words[3], "-") && !stored_name("kept", words[3], kept)) return WRONG;
    if (!number_of(words[4], LONGEST_SECONDS * 1000, &job.ms) || job.ms < 1) return WRONG;
    if (!number_of(words[5], (uint64_t)1 << 46, &job.memory) || !number_of(words[6], (uint64_t)1 << 46, &job.file_bytes)) return WRONG;
    if (link->size > RECIPE_BYTES) return WRONG;
    allow_body(link);
    Outcome outcome = receive_bytes(link, recipe, (size_t)link->size);
    if (outcome == FINE) outcome = receive_end(link);
    return outcome == FINE ? run_job(session, &job, kept) : outcome;
}

static Outcome answer_have(Session *session, const char *name, const char *word) {
    const int is_file = strcmp(session->link.words[1], "file") == 0;
    return send_text(&session->link, (is_file ? is_whole(&session->store, name, word) : touch(name)) ? "yes" : "no", NULL);
}

static Outcome answer(Session *session) {
    Link *link = &session->link;
    char **words = link->words, name[NAME_BYTES];
    const int count = link->count;
    if (session->greeted && strcmp(words[0], "run") == 0 && count == 7) return read_job(session);
    if (session->greeted && strcmp(words[0], "put") == 0 && count == 2 && digest_of(words[1], NULL)) {
        if (link->size > session->store.largest) return send_error(link, "large", "the file is larger than this agent takes", NULL), GONE;
        allow_body(link);
        return put_file(link, &session->store);
    }
    if (link->size != 0) return WRONG;
    const Outcome outcome = receive_end(link);
    if (outcome != FINE) return outcome;
    if (strcmp(words[0], "hello") == 0 && count == 2) return say_hello(session);
    if (!session->greeted || count != 3 || !stored_name(words[1], words[2], name)) return WRONG;
    if (strcmp(words[0], "have") == 0) return answer_have(session, name, words[2]);
    if (strcmp(words[0], "drop") != 0) return WRONG;
    unlink(name);
    return send_text(link, "dropped", NULL);
}

/* Authenticates both sides by the key, which is never sent. */
static Outcome prove(Link *link, const unsigned char *key, size_t size) {
    unsigned char nonces[2 * DIGEST_BYTES], wanted[DIGEST_BYTES], found[DIGEST_BYTES];
    char digits[DIGEST_DIGITS + 1];
    Text line = {.length = 0};
    Hmac start, mac;
    if (getrandom(nonces, DIGEST_BYTES, 0) != DIGEST_BYTES) return send_error(link, "machine", "no random numbers", NULL), GONE;
    digits_of(nonces, digits);
    add(&line, "challenge " VERSION " "), add(&line, digits);
    line.data[line.length] = 0;
    Outcome outcome = send_text(link, line.data, NULL);
    if (outcome == FINE) outcome = receive_header(link);
    if (outcome != FINE) return outcome;
    if (link->count != 3 || link->size || strcmp(link->words[0], "prove")) return WRONG;
    if (!digest_of(link->words[1], nonces + DIGEST_BYTES) || !digest_of(link->words[2], found)) return WRONG;
    hmac_start(&start, key, size);
    mac = start, hmac_add(&mac, "ansor agent 1 client", 20), hmac_add(&mac, nonces, sizeof nonces), hmac_end(&mac, wanted);
    if (!same_digest(wanted, found)) return send_error(link, "denied", "the key is not the one of this agent", NULL), GONE;
    mac = start, hmac_add(&mac, "ansor agent 1 server", 20), hmac_add(&mac, nonces, sizeof nonces), hmac_end(&mac, wanted);
    digits_of(wanted, digits);
    line.length = 0;
    add(&line, "proof "), add(&line, digits);
    line.data[line.length] = 0;
    outcome = send_text(link, line.data, NULL);
    mac = start, hmac_add(&mac, "ansor agent 1 sealed", 20), hmac_add(&mac, nonces, sizeof nonces), hmac_end(&mac, wanted);
    hmac_start(&link->key, wanted, sizeof wanted);
    link->sealed = 1, link->sent = link->received = 0;
    return outcome;
}

static void serve(Session *session) {
    Outcome outcome = FINE;
    while (outcome == FINE) {
        outcome = receive_header(&session->link);
        if (outcome == FINE) outcome = answer(session);
    }
    if (outcome == WRONG) send_error(&session->link, "protocol", "that is not a message of this protocol; the connection ends", NULL);
    if (outcome == LATE) send_error(&session->link, "late", "the message took too long; the connection ends", NULL);
}
