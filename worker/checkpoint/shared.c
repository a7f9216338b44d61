/* shared.c - rank 0 writes a token to a file, and sends the same token through the rendezvous. */
#include "worker/checkpoint/shared.h"

#include "common/base/file.h"
#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define TOKEN_SIZE 17
#define KEY_TOKEN "kept/shared"

static int put(const struct shared_test *test, const char *key, const char *value,
               struct error *err)
{
    return test->rendezvous->put(test->rendezvous->context, key, value, strlen(value), err);
}

static int get(const struct shared_test *test, const char *key, char value[TOKEN_SIZE],
               struct error *err)
{
    size_t size = TOKEN_SIZE - 1;
    int rc = test->rendezvous->get(test->rendezvous->context, key, value, &size, err);
    value[rc == 0 ? size : 0] = '\0';
    return rc;
}

static char *print_seen(char *key, size_t size, int rank)
{
    snprintf(key, size, KEY_TOKEN "/%d", rank);
    return key;
}

/* Write the token, and remove it only after all others have looked. */
static int show(const struct shared_test *test, const char *path, struct error *err)
{
    char token[TOKEN_SIZE], key[64];
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return error_set(err, -errno, "no random number: %s", strerror(errno));
    snprintf(token, sizeof token, "%016" PRIx64, number);
    int rc = folder_make_mode(test->folder, 0777, err);
    if (rc == 0)
        rc = file_write(path, token, 0666, err);
    if (rc == 0)
        rc = put(test, KEY_TOKEN, token, err);
    for (int rank = 1; rank < test->ranks && rc == 0; rank++)
        rc = get(test, print_seen(key, sizeof key, rank), token, err);
    unlink(path);
    return rc;
}

static int look(const struct shared_test *test, const char *path, struct error *err)
{
    char token[TOKEN_SIZE], key[64], *text = NULL;
    struct error words;
    int rc = get(test, KEY_TOKEN, token, err);
    if (rc < 0)
        return rc;
    bool same = file_read(path, &text, &words) == 0 && strcmp(text, token) == 0;
    free(text);
    rc = put(test, print_seen(key, sizeof key, test->rank), "looked", err);
    if (rc == 0 && !same)
        rc = error_set(err, -EXDEV,
                       "node '%s' does not find in '%s' what node '%s' wrote there: "
                       "checkpoint.dir must be one directory that all nodes share",
                       test->node, test->folder, test->first);
    return rc;
}

int shared_check(const struct shared_test *test, struct error *err)
{
    if (test->ranks == 1)
        return 0;
    char *path = xasprintf("%s/.shared-%" PRIu64, test->folder, test->epoch);
    int rc = test->rank == 0 ? show(test, path, err) : look(test, path, err);
    free(path);
    return rc;
}
