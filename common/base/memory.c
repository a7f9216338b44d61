/* memory.c - allocation that cannot fail, and growing arrays. */
#include "common/base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory_need(void *block, size_t size)
{
    if (!block) {
        fprintf(stderr, "out of memory: %zu bytes\n", size);
        abort();
    }
    return block;
}

void *xcalloc(size_t count, size_t size)
{
    return memory_need(calloc(count ? count : 1, size ? size : 1), count * size);
}

void *xrealloc(void *block, size_t size)
{
    return memory_need(realloc(block, size ? size : 1), size);
}

char *xstrdup(const char *text)
{
    return memory_need(strdup(text), strlen(text) + 1);
}

char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return memory_need(length < 0 ? NULL : text, 0);
}

void *grow_full(void *array, size_t count, size_t *capacity, size_t size)
{
    size_t wanted = *capacity ? *capacity * 2 : 8;
    array = xrealloc(array, wanted * size);
    memset((char *)array + count * size, 0, (wanted - count) * size);
    *capacity = wanted;
    return array;
}
