/* memory.h - small control objects on the heap.
 *
 * Out of memory stops the process in one line: a supervisor restarts it, and no caller could
 * do better. Tensors are not allocated here; they are reserved in an arena and fail in words. */
#ifndef COMMON_BASE_MEMORY_H
#define COMMON_BASE_MEMORY_H

#include <stddef.h>

/* Zeroed; never NULL. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *block, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *format, ...) __attribute__((malloc, format(printf, 1, 2)));

/* For a daemon: what large messages took is kept for the next ones. glibc gives it back to the
 * system after each, and taking it again costs more than the message. */
void memory_keep(void);

/* grow() where the array is full. */
void *grow_full(void *array, size_t count, size_t *capacity, size_t size)
    __attribute__((returns_nonnull));

/* Room for one more element: the array, grown and its new tail zeroed where it was full.
 * usage: items = grow(items, count, &capacity, sizeof *items); items[count++] = ... */
static inline void *grow(void *array, size_t count, size_t *capacity, size_t size)
{
    return count < *capacity ? array : grow_full(array, count, capacity, size);
}

#endif
