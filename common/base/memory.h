/* memory.h - heap allocation of small control objects.
 *
 * These functions never return NULL: out of memory ends the process with one line. A supervisor
 * restarts it, and no caller could do better. Tensors are not allocated here; they are reserved in
 * an arena, which fails with an ordinary error. */
#ifndef COMMON_BASE_MEMORY_H
#define COMMON_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed; never NULL. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *block, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *format, ...) __attribute__((malloc, format(printf, 1, 2)));

/* The slow path of grow(). */
void *grow_full(void *array, size_t count, size_t *capacity, size_t size)
    __attribute__((returns_nonnull));

/* Make room for one more element: returns the array, reallocated with a zeroed tail if it was full.
 * Usage: items = grow(items, count, &capacity, sizeof *items); items[count++] = ... */
static inline void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
    return count < *capacity ? array : grow_full(array, count, capacity, size);
}

#endif
