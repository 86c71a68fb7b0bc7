/* The store: files by digest, and files that jobs left by name, in a folder that only this user can access. It is the working folder.

       file-DIGEST   an uploaded file           kept-NAME   a file left by a job
       new-N         an upload in progress      job-N       the folder of a job          lock   held while a job runs

   When the files take too much space, the least recently used ones are removed first. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NAME_BYTES = 96, KEPT_LETTERS = 64, MOST_FILES = 4096, DEEPEST = 32, MOST_WHOLE = 16 };

/* A file whose content had the digest in its name. Every write updates its change time (ctime), which programs cannot set. */
typedef struct {
    char digits[DIGEST_DIGITS + 1];
    ino_t number;
    struct timespec changed;
} Whole;

typedef struct {
    uint64_t space, largest;    /* bytes of all files, of one file */
    uint64_t since;             /* bytes stored since `make_room` last scanned the folder */
    Whole whole[MOST_WHOLE];
    size_t next;                /* the entry to overwrite next */
} Store;

static void join(char *name, const char *head, const char *tail) {
    Text text = {.length = 0};
    add(&text, head);
    add(&text, tail);
    const size_t length = text.length < NAME_BYTES - 1 ? text.length : NAME_BYTES - 1;
    memcpy(name, text.data, length);
    name[length] = 0;
}

static void join_number(char *name, const char *head, uint64_t number) {
    Text text = {.length = 0};
    add_number(&text, number);
    text.data[text.length] = 0;
    join(name, head, text.data);
}

/* Lists the names in a folder with the system call: the C library's functions allocate memory. */
typedef struct {
    int folder;
    int64_t at, end;
    _Alignas(8) char entries[2048];
} Names;

static const char *next_name(Names *names) {
    for (;;) {
        if (names->at >= names->end) {
            names->at = 0, names->end = syscall(SYS_getdents64, names->folder, names->entries, sizeof names->entries);
            if (names->end <= 0) return NULL;
        }
        uint16_t length;
        memcpy(&length, names->entries + names->at + 16, sizeof length);
        const char *name = names->entries + names->at + 19;
        names->at += length;
        if (strcmp(name, ".") && strcmp(name, "..")) return name;
    }
}

static int open_names(Names *names, int parent, const char *name) {
    names->folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    names->at = names->end = 0;
    return names->folder >= 0;
}

/* Accepts lower-case letters, digits, `-` and `_`: no path that leads out of the folder. */
static int is_kept_name(const char *word) {
    const size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return length > 0 && length <= KEPT_LETTERS && word[length] == 0 && word[0] != '-';
}

/* Removes `name` from the folder `parent`; a folder with its contents. A folder nested too deep to keep all its parents open is moved up to the folder `top`,
   where the next pass finds it. Returns whether anything was removed or moved. */
static int remove_part(int top, int parent, const char *name, int depth) {
    static uint64_t moved;
    char number[NAME_BYTES];
    Names names;
    int better = 0;
    if (unlinkat(parent, name, 0) == 0) return 1;
    if (!open_names(&names, parent, name) && (syscall(SYS_fchmodat, parent, name, 0700) || !open_names(&names, parent, name))) return 0;
    fchmod(names.folder, 0700);
    if (depth < DEEPEST)
        for (const char *entry; (entry = next_name(&names));) better |= remove_part(depth ? top : names.folder, names.folder, entry, depth + 1);
    close(names.folder);
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return 1;
    if (depth < DEEPEST) return better;
    join_number(number, "deep-", moved++);
    return renameat(parent, name, top, number) == 0;
}

/* Removes a file, or a folder with all its contents, however deep, from the working folder. */
static void remove_all(const char *name) {
    while (!faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW) && remove_part(-1, AT_FDCWD, name, 0)) {}
}

static int starts(const char *name, const char *head) {
    return strncmp(name, head, strlen(head)) == 0;
}

/* Removes what dead agents left: the number in a name is the agent's pid. */
static void remove_left_over(void) {
    Names names;
    if (!open_names(&names, AT_FDCWD, ".")) return;
    for (const char *entry; (entry = next_name(&names));) {
        uint64_t process;
        if (!starts(entry, "job-") && !starts(entry, "new-")) continue;
        if (!number_of(entry + 4, INT32_MAX, &process) || process < 1) continue;
        if (kill((pid_t)process, 0) && errno == ESRCH) remove_all(entry);
    }
    close(names.folder);
}

/* Enters the folder, and creates it if missing. Returns NULL, or what is wrong with it. */
static const char *enter_store(const char *folder) {
    struct stat found;
    if (mkdir(folder, 0700) && errno != EEXIST) return "the folder for files cannot be made";
    if (chdir(folder) || stat(".", &found)) return "the folder for files cannot be entered";
    if (found.st_uid != geteuid()) return "the folder for files belongs to another user";
    if (found.st_mode & 077) return "others may use the folder for files; take that right away with chmod 700, or name another one with -store";
    return NULL;
}

typedef struct {
    char name[NAME_BYTES];
    int64_t used;
    uint64_t size;
} Stored;

/* Shell sort: the least recently used file first. */
static void sort_by_use(Stored *files, size_t count) {
    for (size_t gap = count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < count; i++) {
            const Stored file = files[i];
            size_t at = i;
            for (; at >= gap && files[at - gap].used > file.used; at -= gap) files[at] = files[at - gap];
            files[at] = file;
        }
}

static size_t list_files(Stored *files, uint64_t *total) {
    Names names;
    size_t count = 0;
    *total = 0;
    if (!open_names(&names, AT_FDCWD, ".")) return 0;
    for (const char *entry; count < MOST_FILES && (entry = next_name(&names));) {
        struct stat found;
        if (!starts(entry, "file-") && !starts(entry, "kept-")) continue;
        if (strlen(entry) >= NAME_BYTES || fstatat(AT_FDCWD, entry, &found, AT_SYMLINK_NOFOLLOW)) continue;
        join(files[count].name, entry, "");
        files[count].used = (int64_t)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec;
        files[count].size = found.st_size > 0 ? (uint64_t)found.st_size : 0;
        *total += files[count++].size;
    }
    close(names.folder);
    return count;
}

/* Makes room for `size` more bytes. Scans the folder only once for each sixteenth of the space that was stored. */
static void make_room(Store *store, uint64_t size) {
    uint64_t total;
    store->since += size + store->space / MOST_FILES;
    if (store->since < store->space / 16 + size) return;
    Stored *files = mmap(NULL, MOST_FILES * sizeof *files, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (files == MAP_FAILED) return;
    size_t count = list_files(files, &total), first = 0;
    sort_by_use(files, count);
    const size_t most = MOST_FILES * 3 / 4;
    const uint64_t wanted = store->space - store->space / 8;
    while (first < count && (total + size > wanted || count - first > most)) {
        unlink(files[first].name);
        total -= files[first++].size;
    }
    munmap(files, MOST_FILES * sizeof *files);
    store->since = size;
}

/* Marks a file as just used, so that it stays. Returns whether it exists. */
static int touch(const char *name) {
    struct stat found;
    if (fstatat(AT_FDCWD, name, &found, AT_SYMLINK_NOFOLLOW) || !S_ISREG(found.st_mode)) return 0;
    utimensat(AT_FDCWD, name, NULL, AT_SYMLINK_NOFOLLOW);
    return 1;
}

/* Whether the content of a file has that digest. */
static int has_digest(const char *name, const char *digits) {
    Sha256 hash;
    unsigned char part[PART_BYTES], digest[DIGEST_BYTES];
    char found[DIGEST_DIGITS + 1];
    ssize_t got;
    const int file = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return 0;
    sha256_start(&hash);
    while ((got = read(file, part, sizeof part)) > 0) sha256_add(&hash, part, (size_t)got);
    close(file);
    sha256_end(&hash, digest);
    digits_of(digest, found);
    return got == 0 && strcmp(found, digits) == 0;
}

/* Whether a file exists and still has the digest in its name; a damaged one is removed. It is read only if it may have changed since this session read it. */
static int is_whole(Store *store, const char *name, const char *digits) {
    struct stat found;
    size_t at = 0;
    if (fstatat(AT_FDCWD, name, &found, AT_SYMLINK_NOFOLLOW)) return 0;
    while (at < MOST_WHOLE && strcmp(store->whole[at].digits, digits)) at++;
    Whole *known = at < MOST_WHOLE ? &store->whole[at] : &store->whole[store->next++ % MOST_WHOLE];
    const int same = at < MOST_WHOLE && known->number == found.st_ino && memcmp(&known->changed, &found.st_ctim, sizeof found.st_ctim) == 0;
    if (!same && !has_digest(name, digits)) return unlink(name), 0;
    if (!touch(name) || fstatat(AT_FDCWD, name, &found, AT_SYMLINK_NOFOLLOW)) return 0;
    memcpy(known->digits, digits, sizeof known->digits);
    known->number = found.st_ino, known->changed = found.st_ctim;
    return 1;
}

static int write_file(int file, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        const ssize_t put = write(file, bytes, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return 0;
        bytes += put, size -= (size_t)put;
    }
    return 1;
}

/* Writes the body of a message to `file`. If that fails (a full disk), the whole body is read all the same, and `*full` is the error number. */
static Outcome receive_file(Link *link, int file, unsigned char *digest, int *full) {
    Sha256 hash;
    const unsigned char *part;
    sha256_start(&hash);
    for (uint64_t length, left = link->size; left > 0; left -= length) {
        size_t came;
        const Outcome outcome = receive_part(link, left < PART_BYTES ? (size_t)left : PART_BYTES, &part, &came);
        if (outcome != FINE) return outcome;
        if (link->sealed) hmac_add(&link->opening, part, came);
        sha256_add(&hash, part, came);
        if (!*full && !write_file(file, part, came)) *full = errno ? errno : ENOSPC;
        length = came;
    }
    sha256_end(&hash, digest);
    return receive_end(link);
}

/* put DIGEST SIZE */
static Outcome put_file(Link *link, Store *store) {
    char temporary[NAME_BYTES], name[NAME_BYTES], found[DIGEST_DIGITS + 1];
    unsigned char digest[DIGEST_BYTES];
    int full = 0;
    make_room(store, link->size);
    join_number(temporary, "new-", (uint64_t)getpid());
    join(name, "file-", link->words[1]);
    unlink(temporary);
    const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
    if (file < 0) full = errno;
    const Outcome outcome = receive_file(link, file, digest, &full);
    if (file >= 0 && close(file)) full = errno;
    digits_of(digest, found);
    const int right = outcome == FINE && strcmp(found, link->words[1]) == 0;
    if (right && !full && rename(temporary, name) == 0) return send_text(link, "put", NULL);
    if (right && !full) full = errno;
    unlink(temporary);
    if (outcome != FINE) return outcome;
    if (!right) return send_error(link, "damaged", "the bytes have another digest than the message says", NULL);
    return send_error(link, "machine", "the file cannot be stored", strerror(full));
}

/* The name in the store of a file of a `kind` (file or kept); NULL if the kind or the word is invalid. */
static const char *stored_name(const char *kind, const char *word, char *name) {
    if (strcmp(kind, "file") == 0 && digest_of(word, NULL)) return join(name, "file-", word), name;
    if (strcmp(kind, "kept") == 0 && is_kept_name(word)) return join(name, "kept-", word), name;
    return NULL;
}
