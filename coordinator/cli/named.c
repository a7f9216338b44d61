/* named.c - tells jobs from paths, and finds what arguments name. */
#include "coordinator/cli/named.h"

#include "coordinator/cli/exit.h"

#include <string.h>
#include <unistd.h>

bool named_job(const char *text)
{
    size_t digits = strncmp(text, "j-", 2) == 0 ? strspn(text + 2, "0123456789") : 0;
    return digits > 0 && text[2 + digits] == '\0';
}

bool named_path(const char *text)
{
    return strchr(text, '/') || (!named_job(text) && access(text, F_OK) == 0);
}

static const char *name_of(const void *item, size_t name)
{
    return *(char *const *)((const char *)item + name);
}

int named_bring(const struct invocation *invocation, void **items, size_t all, size_t name,
                const char *kind, size_t *count, struct error *err)
{
    *count = 0;
    for (int n = 0; n < invocation->argument_count; n++) {
        const char *wanted = invocation->arguments[n];
        size_t at = 0;
        while (at < all && strcmp(name_of(items[at], name), wanted) != 0)
            at++;
        if (at == all)
            return error_set(err, EXIT_INPUT, "there is no %s '%s'", kind, wanted);
        if (at < *count)
            continue; /* an earlier argument named it */
        void *item = items[at];
        items[at] = items[*count];
        items[(*count)++] = item;
    }
    return EXIT_DONE;
}
