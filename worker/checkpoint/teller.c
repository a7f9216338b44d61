/* teller.c - the report of every shard, and on rank 0 the manifest; see teller.h. */
#include "worker/checkpoint/teller.h"

#include "common/base/memory.h"
#include "worker/checkpoint/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Size of a rank's report to rank 0: three numbers, or "!" and the reason why it has no shard. */
#define TOLD_SIZE 2048

struct entry {
    uint64_t step;
    char *folder;
    double waited_s;
    char told[TOLD_SIZE];
    struct entry *next;
};

struct teller {
    const struct saver_config *config;
    const char *root;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry *first, **last; /* the first is being reported */
    bool quit;
    uint64_t listed; /* see teller_listed */
    int rc;          /* how the thread ended */
    struct error words;
};

static char *print_key(char *key, size_t size, uint64_t step, int rank)
{
    snprintf(key, size, "kept/checkpoint/%" PRIu64 "/%d", step, rank);
    return key;
}

static void print_told(char *told, const struct manifest_shard *shard, int rc,
                       const struct error *err)
{
    if (rc < 0)
        snprintf(told, TOLD_SIZE, "!%s", err->text);
    else
        snprintf(told, TOLD_SIZE, "%" PRIu64 " %" PRIx64 " %" PRIx64, shard->size, shard->checksum,
                 shard->header);
}

/* Check that rank 0 sees another rank's shard. If the folder is no longer shared, because one node
 * has unmounted it, nobody could load the checkpoint. The file is opened because that is what makes
 * a network file system ask its server. */
static int find_shard(const char *folder, const struct manifest_shard *shard, struct error *err)
{
    char *path = xasprintf("%s/%s", folder, shard->file);
    struct stat status = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 || fstat(fd, &status) < 0 ? -errno : 0;
    if (rc < 0)
        error_set(err, rc, "its shard '%s' is not seen by rank 0: %s: is the folder shared?", path,
                  strerror(-rc));
    else if ((uint64_t)status.st_size != shard->size)
        rc = error_set(err, -EIO, "its shard '%s' has %" PRIu64 " bytes, rank 0 sees %lld", path,
                       shard->size, (long long)status.st_size);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* Add a rank's shard to the manifest, or fail with the rank's reason. */
static int take_told(struct manifest *manifest, const char *folder, int rank, char *told,
                     struct error *err)
{
    char file[64];
    struct manifest_shard shard = {.file = file};
    snprintf(file, sizeof file, "rank-%05d.safetensors", rank);
    if (told[0] == '!')
        return error_set(err, -EIO, "rank %d: %s", rank, told + 1);
    if (sscanf(told, "%" SCNu64 " %" SCNx64 " %" SCNx64, &shard.size, &shard.checksum,
               &shard.header) != 3)
        return error_set(err, -EPROTO, "rank %d says '%.40s' about its shard", rank, told);
    if (shard.size == 0)
        return 0;
    int rc = find_shard(folder, &shard, err);
    if (rc < 0)
        return error_prefix(err, rc, "rank %d", rank);
    manifest_add(manifest, &shard);
    return 0;
}

/* Collect the reports of all ranks. *failed is the first failure, with its words in err; the result
 * is that of the rendezvous. All ranks are waited for, so that afterwards nobody writes to the
 * folder any more. */
static int collect(const struct teller *teller, uint64_t step, const char *folder, char *own,
                   struct manifest *manifest, int *failed, struct error *err)
{
    const struct rendezvous *rendezvous = teller->config->rendezvous;
    *failed = take_told(manifest, folder, 0, own, err);
    for (int rank = 1; rank < teller->config->program->ranks; rank++) {
        char key[64], told[TOLD_SIZE + 1] = "";
        size_t size = TOLD_SIZE;
        struct error words;
        int rc = rendezvous->get(rendezvous->context, print_key(key, sizeof key, step, rank), told,
                                 &size, &words);
        if (rc < 0)
            return error_set(err, rc, "%s", words.text);
        told[size] = '\0';
        rc = take_told(manifest, folder, rank, told, &words);
        if (rc < 0 && *failed == 0)
            *failed = error_set(err, rc, "%s", words.text);
    }
    return 0;
}

static uint64_t total_bytes(const struct manifest *manifest)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < manifest->shard_count; i++)
        bytes += manifest->shards[i].size;
    return bytes;
}

/* Report, wait until it is listed, and delete what is not. */
static int stage(struct teller *teller, const struct saver_report *report, struct error *err)
{
    struct saver_listed listed = {0};
    struct error words;
    int rc = teller->config->staged(teller->config->context, report, &listed, err);
    if (rc == 0 && listed.count > 0 &&
        checkpoint_clean(teller->root, teller->config->origin.epoch, report->step,
                         (const char *const *)listed.names, listed.count, &words) < 0 &&
        teller->config->complain)
        teller->config->complain(teller->config->context, words.text);
    for (size_t i = 0; i < listed.count; i++)
        free(listed.names[i]);
    free(listed.names);
    return rc;
}

static void note_listed(struct teller *teller, uint64_t step)
{
    pthread_mutex_lock(&teller->lock);
    teller->listed = step;
    pthread_mutex_unlock(&teller->lock);
}

/* Rank 0: write the manifest once all shards are there, and stage the checkpoint. */
static int complete(struct teller *teller, uint64_t step, double waited_s, const char *folder,
                    char *own, struct error *err)
{
    struct manifest manifest;
    struct manifest_origin origin = teller->config->origin;
    int failed;
    origin.step = step;
    manifest_init(&manifest, &origin, teller->config->program->graph);
    int rc = collect(teller, step, folder, own, &manifest, &failed, err);
    if (rc == 0 && failed == 0)
        failed = manifest_write(&manifest, folder, err);
    if (rc == 0 && failed < 0)
        checkpoint_delete(folder, NULL);
    if (rc == 0) {
        struct saver_report report = {
            .step = step,
            .name = strrchr(folder, '/') + 1,
            .bytes = total_bytes(&manifest),
            .shards = manifest.shard_count,
            .waited_s = waited_s,
            .failure = failed < 0 ? err->text : NULL,
        };
        struct error words;
        rc = stage(teller, &report, &words);
        if (rc < 0)
            error_set(err, rc, "%s", words.text);
        else if (failed == 0)
            note_listed(teller, step);
    }
    manifest_finish(&manifest);
    return rc;
}

/* Rank 0 waits for the others; the others only for the rendezvous. */
static int tell(struct teller *teller, struct entry *entry, struct error *err)
{
    const struct rendezvous *rendezvous = teller->config->rendezvous;
    int rank = teller->config->program->rank;
    char key[64];
    if (rank == 0)
        return complete(teller, entry->step, entry->waited_s, entry->folder, entry->told, err);
    return rendezvous->put(rendezvous->context, print_key(key, sizeof key, entry->step, rank),
                           entry->told, strlen(entry->told), err);
}

static void drop_first(struct teller *teller)
{
    struct entry *entry = teller->first;
    teller->first = entry->next;
    if (!teller->first)
        teller->last = &teller->first;
    free(entry->folder);
    free(entry);
}

static void *run(void *context)
{
    struct teller *teller = context;
    pthread_mutex_lock(&teller->lock);
    for (;;) {
        while (!teller->first && !teller->quit)
            pthread_cond_wait(&teller->changed, &teller->lock);
        if (teller->quit)
            break;
        struct entry *entry = teller->first;
        struct error words;
        pthread_mutex_unlock(&teller->lock);
        int rc = tell(teller, entry, &words);
        pthread_mutex_lock(&teller->lock);
        if (rc < 0)
            teller->rc = error_set(&teller->words, rc, "the checkpoint of step %" PRIu64 ": %s",
                                   entry->step, words.text);
        drop_first(teller);
        pthread_cond_broadcast(&teller->changed);
        if (rc < 0)
            break;
    }
    pthread_mutex_unlock(&teller->lock);
    return NULL;
}

struct teller *teller_create(const struct saver_config *config, const char *root)
{
    struct teller *teller = xcalloc(1, sizeof *teller);
    teller->config = config;
    teller->root = root;
    teller->last = &teller->first;
    pthread_mutex_init(&teller->lock, NULL);
    pthread_cond_init(&teller->changed, NULL);
    if (pthread_create(&teller->thread, NULL, run, teller) != 0)
        abort(); /* a process that cannot have a thread is out of memory too */
    return teller;
}

void teller_add(struct teller *teller, uint64_t step, const char *folder, double waited_s,
                const struct manifest_shard *shard, int rc, const struct error *why)
{
    struct entry *entry = xcalloc(1, sizeof *entry);
    entry->step = step;
    entry->folder = xstrdup(folder);
    entry->waited_s = waited_s;
    print_told(entry->told, shard, rc, why);
    pthread_mutex_lock(&teller->lock);
    *teller->last = entry;
    teller->last = &entry->next;
    pthread_cond_broadcast(&teller->changed);
    pthread_mutex_unlock(&teller->lock);
}

/* Needs the lock. */
static int end_of(const struct teller *teller, struct error *err)
{
    return teller->rc < 0 ? error_set(err, teller->rc, "%s", teller->words.text) : 0;
}

int teller_failed(struct teller *teller, struct error *err)
{
    pthread_mutex_lock(&teller->lock);
    int rc = end_of(teller, err);
    pthread_mutex_unlock(&teller->lock);
    return rc;
}

uint64_t teller_listed(struct teller *teller)
{
    pthread_mutex_lock(&teller->lock);
    uint64_t step = teller->listed;
    pthread_mutex_unlock(&teller->lock);
    return step;
}

int teller_finish(struct teller *teller, struct error *err)
{
    pthread_mutex_lock(&teller->lock);
    while (teller->first && teller->rc == 0)
        pthread_cond_wait(&teller->changed, &teller->lock);
    int rc = end_of(teller, err);
    pthread_mutex_unlock(&teller->lock);
    return rc;
}

void teller_destroy(struct teller *teller)
{
    if (!teller)
        return;
    pthread_mutex_lock(&teller->lock);
    bool waits = teller->first && teller->rc == 0;
    teller->quit = true;
    pthread_cond_broadcast(&teller->changed);
    pthread_mutex_unlock(&teller->lock);
    if (waits && teller->config->abandon)
        teller->config->abandon(teller->config->context);
    pthread_join(teller->thread, NULL);
    while (teller->first)
        drop_first(teller);
    pthread_mutex_destroy(&teller->lock);
    pthread_cond_destroy(&teller->changed);
    free(teller);
}
