/* Short strings and whole numbers of bounded length; what does not fit is cut off. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    char data[1024];
    size_t length;
} Text;

static void add_bytes(Text *text, const char *bytes, size_t size) {
    const size_t room = sizeof text->data - text->length, part = size < room ? size : room;
    if (part > 0) memcpy(text->data + text->length, bytes, part);
    text->length += part;
}

static void add(Text *text, const char *word) {
    add_bytes(text, word, strlen(word));
}

static void add_number(Text *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    add_bytes(text, digits + at, sizeof digits - at);
}

/* Whether `word` is a whole number up to `largest`, in at most 15 digits. */
static int number_of(const char *word, uint64_t largest, uint64_t *number) {
    const size_t length = strlen(word);
    if (length < 1 || length > 15) return 0;
    *number = 0;
    for (size_t i = 0; i < length; i++) {
        if (word[i] < '0' || word[i] > '9') return 0;
        *number = 10 * *number + (uint64_t)(word[i] - '0');
    }
    return *number <= largest;
}
