/* error.c - formats error texts; one that is too long is cut. */
#include "common/base/error.h"

#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int rc, const char *format, ...)
{
    if (!err)
        return rc;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return rc;
}

int error_prefix(struct error *err, int rc, const char *format, ...)
{
    if (!err)
        return rc;
    char text[ERROR_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ": %s", err->text);
    memcpy(err->text, text, sizeof text);
    return rc;
}
