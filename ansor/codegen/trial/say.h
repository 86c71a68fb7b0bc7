/* Text that goes out: one JSON object. Numbers that have to be exact are the bits of a double, as "x" and 16 hexadecimal digits. */
#ifndef ANSOR_TRIAL_SAY_H
#define ANSOR_TRIAL_SAY_H

#include "number.h"
#include "system.h"

#ifdef TRIAL_SMALL
static char say_buffer[1 << 8];
#else
static char say_buffer[1 << 12];
#endif
static size_t say_length;

static void say_flush(void) {
    system_say(say_buffer, say_length);
    say_length = 0;
}

static void say(const char *text) {
    for (; *text; ++text) {
        if (say_length == sizeof say_buffer) say_flush();
        say_buffer[say_length++] = *text;
    }
}

static void say_integer(int64_t number) {
    char text[24];
    int place = sizeof text - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    text[place] = 0;
    do text[--place] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) text[--place] = '-';
    say(text + place);
}

static void say_hex(uint64_t bits) {
    char text[17];
    for (int i = 0; i < 16; ++i) text[i] = "0123456789abcdef"[bits >> (60 - 4 * i) & 15];
    text[16] = 0;
    say(text);
}

static void say_double(double value) {
    say("\"x");
    say_hex(number_bits(value));
    say("\"");
}

static void say_field(const char *name, int64_t number) {
    say("\"");
    say(name);
    say("\": ");
    say_integer(number);
}

static void say_double_field(const char *name, double value) {
    say("\"");
    say(name);
    say("\": ");
    say_double(value);
}

/* Ends the program with a failure. `kind` is one of `ansor.measure.failure`; the text is before, name, between and number, where it is not negative. */
static void fail(const char *kind, const char *before, const char *name, const char *between, int64_t number) {
    say("{\"failure\": [\"");
    say(kind);
    say("\", \"");
    say(before);
    if (name) say("'"), say(name), say("'");
    say(between);
    if (number >= 0) say_integer(number);
    say("\"]}\n");
    say_flush();
    system_end();
}

#endif
