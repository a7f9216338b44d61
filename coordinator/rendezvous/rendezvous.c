/* rendezvous.c - unordered arrays of epochs and, in each, of entries.
 *
 * A job of n ranks puts about n keys per group of ranks, a few thousand in all. Hashes are compared
 * first, so searching a thousand entries takes about a microsecond. */
#include "coordinator/rendezvous/rendezvous.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t hash;
    char *key;
    void *value;
    size_t size;
};

struct epoch {
    char *job;
    uint64_t number;
    struct entry *entries;
    size_t count, capacity;
    size_t bytes; /* of keys and values */
};

struct rendezvous {
    struct epoch *epochs;
    size_t count, capacity;
};

struct rendezvous *rendezvous_create(void)
{
    return xcalloc(1, sizeof(struct rendezvous));
}

static void rendezvous_epoch_finish(struct epoch *epoch)
{
    for (size_t i = 0; i < epoch->count; i++) {
        free(epoch->entries[i].key);
        free(epoch->entries[i].value);
    }
    free(epoch->entries);
    free(epoch->job);
}

void rendezvous_destroy(struct rendezvous *rendezvous)
{
    if (!rendezvous)
        return;
    for (size_t i = 0; i < rendezvous->count; i++)
        rendezvous_epoch_finish(&rendezvous->epochs[i]);
    free(rendezvous->epochs);
    free(rendezvous);
}

static struct epoch *rendezvous_find_epoch(const struct rendezvous *rendezvous, const char *job,
                                           uint64_t number)
{
    for (size_t i = 0; i < rendezvous->count; i++)
        if (rendezvous->epochs[i].number == number && strcmp(rendezvous->epochs[i].job, job) == 0)
            return &rendezvous->epochs[i];
    return NULL;
}

static struct entry *rendezvous_find_entry(const struct epoch *epoch, const char *key)
{
    uint64_t hash = hash_text(HASH_START, key);
    for (size_t i = 0; i < epoch->count; i++)
        if (epoch->entries[i].hash == hash && strcmp(epoch->entries[i].key, key) == 0)
            return &epoch->entries[i];
    return NULL;
}

static struct epoch *rendezvous_get_epoch(struct rendezvous *rendezvous, const char *job,
                                          uint64_t number)
{
    struct epoch *epoch = rendezvous_find_epoch(rendezvous, job, number);
    if (epoch)
        return epoch;
    rendezvous->epochs = grow(rendezvous->epochs, rendezvous->count, &rendezvous->capacity,
                              sizeof *rendezvous->epochs);
    epoch = &rendezvous->epochs[rendezvous->count++];
    *epoch = (struct epoch){.job = xstrdup(job), .number = number};
    return epoch;
}

int rendezvous_put(struct rendezvous *rendezvous, const char *job, uint64_t number, const char *key,
                   const void *value, size_t size, struct error *err)
{
    size_t length = strlen(key);
    if (length == 0 || length >= RENDEZVOUS_KEY_SIZE)
        return error_set(err, -EINVAL, "a key has 1 to %d characters, this one has %zu",
                         RENDEZVOUS_KEY_SIZE - 1, length);
    struct epoch *epoch = rendezvous_get_epoch(rendezvous, job, number);
    const struct entry *old = rendezvous_find_entry(epoch, key);
    if (old && old->size == size && (size == 0 || memcmp(old->value, value, size) == 0))
        return 0;
    if (old)
        return error_set(err, -EEXIST, "%s, epoch %llu: '%s' was put before, with another value",
                         job, (unsigned long long)number, key);
    if (size > RENDEZVOUS_BYTES_MAX - epoch->bytes ||
        length > RENDEZVOUS_BYTES_MAX - epoch->bytes - size)
        return error_set(err, -ENOSPC, "%s, epoch %llu: its keys and values fill %zu bytes already",
                         job, (unsigned long long)number, epoch->bytes);

    epoch->entries = grow(epoch->entries, epoch->count, &epoch->capacity, sizeof *epoch->entries);
    struct entry *entry = &epoch->entries[epoch->count++];
    *entry = (struct entry){.hash = hash_text(HASH_START, key), .key = xstrdup(key), .size = size};
    if (size > 0) {
        entry->value = xcalloc(1, size);
        memcpy(entry->value, value, size);
    }
    epoch->bytes += length + size;
    return 0;
}

bool rendezvous_get(const struct rendezvous *rendezvous, const char *job, uint64_t number,
                    const char *key, const void **value, size_t *size)
{
    const struct epoch *epoch = rendezvous_find_epoch(rendezvous, job, number);
    const struct entry *entry = epoch ? rendezvous_find_entry(epoch, key) : NULL;
    if (!entry)
        return false;
    *value = entry->value;
    *size = entry->size;
    return true;
}

void rendezvous_forget(struct rendezvous *rendezvous, const char *job)
{
    size_t kept = 0;
    for (size_t i = 0; i < rendezvous->count; i++) {
        if (strcmp(rendezvous->epochs[i].job, job) == 0)
            rendezvous_epoch_finish(&rendezvous->epochs[i]);
        else
            rendezvous->epochs[kept++] = rendezvous->epochs[i];
    }
    rendezvous->count = kept;
}

static void rendezvous_forget_entries(struct epoch *epoch, const char *prefix)
{
    size_t kept = 0, length = strlen(prefix);
    for (size_t i = 0; i < epoch->count; i++) {
        struct entry *entry = &epoch->entries[i];
        if (strncmp(entry->key, prefix, length) != 0) {
            epoch->entries[kept++] = *entry;
            continue;
        }
        epoch->bytes -= strlen(entry->key) + entry->size;
        free(entry->key);
        free(entry->value);
    }
    epoch->count = kept;
}

void rendezvous_forget_prefix(struct rendezvous *rendezvous, const char *job, const char *prefix)
{
    for (size_t i = 0; i < rendezvous->count; i++)
        if (strcmp(rendezvous->epochs[i].job, job) == 0)
            rendezvous_forget_entries(&rendezvous->epochs[i], prefix);
}
