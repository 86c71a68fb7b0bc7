/* What to do with the program: lines of text, `ansor.measure.trial.recipe` writes them. Arguments go by their place; doubles are "x" and their bits. */
#ifndef ANSOR_TRIAL_RECIPE_H
#define ANSOR_TRIAL_RECIPE_H

#include "say.h"

#define RECIPE_HEAD "ansor-trial 1"
#ifdef TRIAL_SMALL
enum { RECIPE_BYTES = 3 << 10, RECIPE_OUTPUTS = 8, RECIPE_REPEATS = 16 };
#else
enum { RECIPE_BYTES = 1 << 16, RECIPE_OUTPUTS = 64, RECIPE_REPEATS = 256 };
#endif

/* How an argument is filled: by the generator, or from a file with its logical contents, or as its buffer has them (stored). `kind` and `bytes`: what the
 * values are rounded to. */
typedef struct {
    int known, kind, bytes;
    uint64_t key, span;
    int64_t first; /* integers are in [first, first + span) */
    double low, high;
    const unsigned char *file;
    int stored;
} recipe_fill;

/* The rules of one output; `ansor.measure.verify` explains them. `slot`: its place among the outputs that were kept. */
typedef struct {
    int argument, slot;
    double factor, eps, tiny, stated;
} recipe_check;

typedef struct {
    int argument, count;
    int64_t block;
    uint64_t key;
} recipe_sums;

/* `ansor.measure.timing` explains them. `best` is infinite where nothing is known; `on` is 0 for a program that is counted instead. */
typedef struct {
    int on, wall;
    int64_t number, repeat, contender_repeats, flush_bytes;
    double min_seconds, cut_ratio, contender_ratio, limit, best;
} recipe_timing;

typedef struct {
    recipe_fill fills[TRIAL_ARGUMENTS];
    recipe_check checks[RECIPE_OUTPUTS];
    recipe_sums sums[RECIPE_OUTPUTS];
    int check_count, sums_count, threads, counted, warm;
    int64_t moves;
    double move_eps, move_limit;
    uint64_t move_key;
    recipe_timing timing;
    const char *outputs; /* a file for all outputs of a trial, or NULL */
} recipe;

static recipe asked;

static void recipe_refused(const char *why, int64_t line) { fail("load", "the recipe cannot be followed: ", NULL, why, line); }

typedef struct {
    char *at;
    int64_t line;
} recipe_reader;

/* The next word of the line, ended by a zero; empty at the end of the line. */
static const char *recipe_word(recipe_reader *reader) {
    while (*reader->at == ' ') ++reader->at;
    char *word = reader->at;
    while (*reader->at && *reader->at != ' ') ++reader->at;
    if (*reader->at) *reader->at++ = 0;
    return word;
}

static int recipe_same(const char *one, const char *other) {
    while (*one && *one == *other) ++one, ++other;
    return *one == *other;
}

static uint64_t recipe_hex(recipe_reader *reader) {
    const char *word = recipe_word(reader);
    uint64_t bits = 0;
    int digits = 0;
    for (; *word; ++word, ++digits) {
        const int digit = *word >= '0' && *word <= '9' ? *word - '0' : *word >= 'a' && *word <= 'f' ? *word - 'a' + 10 : -1;
        if (digit < 0) break;
        bits = bits << 4 | (uint64_t)digit;
    }
    if (*word || digits != 16) recipe_refused("16 hexadecimal digits are missing in line ", reader->line);
    return bits;
}

static double recipe_double(recipe_reader *reader) {
    while (*reader->at == ' ') ++reader->at;
    if (*reader->at++ != 'x') recipe_refused("the bits of a number are missing in line ", reader->line);
    return number_of_bits(recipe_hex(reader));
}

static int64_t recipe_integer(recipe_reader *reader, int64_t least, int64_t most) {
    const char *word = recipe_word(reader);
    const int negative = *word == '-';
    uint64_t number = 0;
    int digits = 0;
    for (word += negative; *word >= '0' && *word <= '9' && digits < 19; ++word, ++digits) number = number * 10 + (uint64_t)(*word - '0');
    const int64_t found = negative ? (int64_t)(0 - number) : (int64_t)number;
    if (*word || !digits || found < least || found > most) recipe_refused("an integer is missing, or too large, in line ", reader->line);
    return found;
}

static int recipe_argument(recipe_reader *reader) { return (int)recipe_integer(reader, 0, ansor_trial_manifest.count - 1); }

/* A dtype: the letter of its kind and its bytes. */
static void recipe_dtype(recipe_reader *reader, recipe_fill *fill) {
    const char *word = recipe_word(reader);
    fill->kind = word[0];
    fill->bytes = fill->kind ? word[1] - '0' : 0;
    const int known = fill->kind == 'f' || fill->kind == 'i' || fill->kind == 'u' || fill->kind == 'b';
    const int power = fill->bytes == 1 || fill->bytes == 2 || fill->bytes == 4 || fill->bytes == 8;
    if (!known || !power || (fill->kind == 'f' && fill->bytes == 1)) recipe_refused("no dtype in line ", reader->line);
}

static void recipe_read_fill(recipe_reader *reader) {
    recipe_fill *fill = &asked.fills[recipe_argument(reader)];
    recipe_dtype(reader, fill);
    fill->key = recipe_hex(reader);
    if (fill->kind == 'f') {
        fill->low = recipe_double(reader);
        fill->high = recipe_double(reader);
    } else {
        fill->first = recipe_integer(reader, INT64_MIN, INT64_MAX);
        fill->span = recipe_hex(reader);
    }
    fill->known = 1;
}

/* The rest of the line, as a path may have spaces: the last `wanted` bytes of that file. */
static void recipe_open(recipe_reader *reader, int place, uint64_t wanted) {
    recipe_fill *fill = &asked.fills[place];
    while (*reader->at == ' ') ++reader->at;
    uint64_t size = 0;
    fill->file = system_file(reader->at, &size);
    if (!fill->file || size < wanted) fail("load", "the values of ", ansor_trial_manifest.arguments[place].name, " cannot be read from their file", -1);
    fill->file += size - wanted; /* behind a header */
    fill->known = 1;
}

static void recipe_read_file(recipe_reader *reader) {
    const int place = recipe_argument(reader);
    recipe_dtype(reader, &asked.fills[place]);
    recipe_open(reader, place, (uint64_t)recipe_integer(reader, 0, INT64_MAX));
}

static void recipe_read_stored(recipe_reader *reader) {
    const int place = recipe_argument(reader);
    const trial_argument *argument = &ansor_trial_manifest.arguments[place];
    const uint64_t wanted = (uint64_t)recipe_integer(reader, 0, INT64_MAX);
    if (wanted != argument->size * (uint64_t)argument->bytes) fail("load", "the stored number of bytes differs from that of ", argument->name, ": ", (int64_t)wanted);
    asked.fills[place].stored = 1;
    recipe_open(reader, place, wanted);
}

static void recipe_read_check(recipe_reader *reader) {
    if (asked.check_count == RECIPE_OUTPUTS) recipe_refused("too many outputs in line ", reader->line);
    recipe_check *check = &asked.checks[asked.check_count++];
    check->argument = recipe_argument(reader);
    check->slot = (int)recipe_integer(reader, 0, RECIPE_OUTPUTS - 1);
    check->factor = recipe_double(reader);
    check->eps = recipe_double(reader);
    check->tiny = recipe_double(reader);
    check->stated = recipe_double(reader);
}

static void recipe_read_sums(recipe_reader *reader) {
    if (asked.sums_count == RECIPE_OUTPUTS) recipe_refused("too many sums in line ", reader->line);
    recipe_sums *sums = &asked.sums[asked.sums_count++];
    sums->argument = recipe_argument(reader);
    sums->block = recipe_integer(reader, 1, INT64_MAX);
    sums->count = (int)recipe_integer(reader, 1, 64);
    sums->key = recipe_hex(reader);
}

static void recipe_read_time(recipe_reader *reader) {
    recipe_timing *timing = &asked.timing;
    timing->on = 1;
    timing->wall = recipe_same(recipe_word(reader), "wall");
    timing->number = recipe_integer(reader, 1, INT64_MAX);
    timing->repeat = recipe_integer(reader, 1, RECIPE_REPEATS);
    timing->contender_repeats = recipe_integer(reader, 0, RECIPE_REPEATS - timing->repeat);
    timing->flush_bytes = recipe_integer(reader, 0, INT64_MAX);
    timing->min_seconds = recipe_double(reader);
    timing->cut_ratio = recipe_double(reader);
    timing->contender_ratio = recipe_double(reader);
    timing->limit = recipe_double(reader);
    timing->best = recipe_double(reader);
}

static void recipe_read_moves(recipe_reader *reader) {
    asked.moves = recipe_integer(reader, 0, 100);
    asked.move_key = recipe_hex(reader);
    asked.move_eps = recipe_double(reader);
    asked.move_limit = recipe_double(reader);
}

/* 0 at the end of the recipe. */
static int recipe_read_line(recipe_reader *reader) {
    const char *word = recipe_word(reader);
    if (recipe_same(word, "fill")) recipe_read_fill(reader);
    else if (recipe_same(word, "file")) recipe_read_file(reader);
    else if (recipe_same(word, "stored")) recipe_read_stored(reader);
    else if (recipe_same(word, "check")) recipe_read_check(reader);
    else if (recipe_same(word, "sums")) recipe_read_sums(reader);
    else if (recipe_same(word, "time")) recipe_read_time(reader);
    else if (recipe_same(word, "moves")) recipe_read_moves(reader);
    else if (recipe_same(word, "threads")) asked.threads = (int)recipe_integer(reader, 1, 1 << 16);
    else if (recipe_same(word, "outputs")) asked.outputs = reader->at;
    else if (recipe_same(word, "count")) asked.counted = 1, asked.warm = (int)recipe_integer(reader, 0, 1000);
    else if (recipe_same(word, "end")) return 0;
    else recipe_refused("an unknown word begins line ", reader->line);
    return 1;
}

static void recipe_read(void) {
    static char text[RECIPE_BYTES + 1];
    const size_t size = system_read(text, RECIPE_BYTES);
    text[size] = 0;
    recipe_reader reader = {text, 1};
    char *next = text;
    for (;; ++reader.line) {
        reader.at = next;
        while (*next && *next != '\n') ++next;
        if (!*next) recipe_refused("it has no end after line ", reader.line - 1);
        *next++ = 0;
        if (reader.line == 1 && !recipe_same(reader.at, RECIPE_HEAD)) recipe_refused("it is not one of version 1, see line ", 1);
        if (reader.line > 1 && !recipe_read_line(&reader)) return;
    }
}

#endif
