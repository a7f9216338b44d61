/* limited.c - a script in a folder of its own, and the number in a file beside it. */
#include "tests/cluster/limited.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], executor[96], number_path[96];

const char *limited_begin(const char *words)
{
    strcpy(folder, "/tmp/gimbal-limited-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(executor, sizeof executor, "%s/executor", folder);
    snprintf(number_path, sizeof number_path, "%s/number", folder);
    FILE *file = fopen(executor, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\n[ ! -f %s ] || %s$(cat %s)\nexec '%s' \"$@\"\n", number_path, words,
            number_path, EXECUTOR);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(executor, 0755), 0);
    return executor;
}

void limited_set(uint64_t number)
{
    FILE *file = fopen(number_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%" PRIu64 "\n", number);
    ck_assert_int_eq(fclose(file), 0);
}

void limited_end(void)
{
    unlink(number_path);
    unlink(executor);
    ck_assert_int_eq(rmdir(folder), 0);
}
