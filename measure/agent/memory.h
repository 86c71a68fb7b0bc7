/* Small versions of functions that compilers or the C library call: its own are optimised for speed, and would be a tenth of the agent's size. */

#ifdef SMALL
#include <stddef.h>

__attribute__((no_builtin)) void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    for (size_t i = 0; i < size; i++) ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    return to;
}

__attribute__((no_builtin)) void *memmove(void *to, const void *from, size_t size) {
    if (to < from) return memcpy(to, from, size);
    while (size-- > 0) ((unsigned char *)to)[size] = ((const unsigned char *)from)[size];
    return to;
}

__attribute__((no_builtin)) void *memset(void *to, int value, size_t size) {
    for (size_t i = 0; i < size; i++) ((unsigned char *)to)[i] = (unsigned char)value;
    return to;
}

/* `execvpe` calls it by this name. */
char *__strchrnul(const char *in, int byte) {
    while (*in && *in != (char)byte) in++;
    return (char *)in;
}

char *strchr(const char *in, int byte) {
    char *at = __strchrnul(in, byte);
    return *at == (char)byte ? at : NULL;
}
#endif
