/* Small versions of functions that compilers call implicitly: the C library's are optimised for speed, and would be a tenth of the agent's size. */

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
#endif
