/* saver.c - one copy, one thread, and what ranks tell each other about it. */
#include "worker/checkpoint/saver.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/checkpoint/write.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* What a rank tells rank 0 about its shard: three numbers, or "!" and why it has none. */
#define TOLD_SIZE 2048

struct saver {
    struct saver_config config;
    char *root;
    struct state_slices slices;
    void *copy;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool filled; /* the copy holds a step that is not on the disk */
    bool busy, quit;
    uint64_t step; /* of the copy */
    double waited_s;
    int rc; /* the thread's end */
    struct error words;
};

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool is_first(const struct saver *saver)
{
    return saver->config.program->rank == 0;
}

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

/* Of another rank, into the manifest; its words when it has none. */
static int take_told(struct manifest *manifest, int rank, char *told, struct error *err)
{
    char file[64];
    struct manifest_shard shard = {.file = file};
    snprintf(file, sizeof file, "rank-%05d.safetensors", rank);
    if (told[0] == '!')
        return error_set(err, -EIO, "rank %d: %s", rank, told + 1);
    if (sscanf(told, "%" SCNu64 " %" SCNx64 " %" SCNx64, &shard.size, &shard.checksum,
               &shard.header) != 3)
        return error_set(err, -EPROTO, "rank %d says '%.40s' about its shard", rank, told);
    if (shard.size > 0)
        manifest_add(manifest, &shard);
    return 0;
}

/* What all ranks have written. The first failure is *failed, in err; the result is that of the
 * rendezvous. All are waited for: nobody writes to the folder any more then. */
static int collect(const struct saver *saver, uint64_t step, char *own, struct manifest *manifest,
                   int *failed, struct error *err)
{
    const struct rendezvous *rendezvous = saver->config.rendezvous;
    *failed = take_told(manifest, 0, own, err);
    for (int rank = 1; rank < saver->config.program->ranks; rank++) {
        char key[64], told[TOLD_SIZE + 1] = "";
        size_t size = TOLD_SIZE;
        struct error words;
        int rc = rendezvous->get(rendezvous->context, print_key(key, sizeof key, step, rank), told,
                                 &size, &words);
        if (rc < 0)
            return error_set(err, rc, "%s", words.text);
        told[size] = '\0';
        rc = take_told(manifest, rank, told, &words);
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

/* Tell, wait, and tidy up. */
static int stage(struct saver *saver, const struct saver_report *report, struct error *err)
{
    struct saver_listed listed = {0};
    struct error words;
    int rc = saver->config.staged(saver->config.context, report, &listed, err);
    if (rc == 0 && listed.count > 0 &&
        checkpoint_clean(saver->root, saver->config.origin.epoch, report->step,
                         (const char *const *)listed.names, listed.count, &words) < 0 &&
        saver->config.complain)
        saver->config.complain(saver->config.context, words.text);
    for (size_t i = 0; i < listed.count; i++)
        free(listed.names[i]);
    free(listed.names);
    return rc;
}

/* Rank 0: the manifest, when all shards are there. */
static int complete(struct saver *saver, uint64_t step, double waited_s, const char *folder,
                    char *own, struct error *err)
{
    struct manifest manifest;
    struct manifest_origin origin = saver->config.origin;
    int failed;
    origin.step = step;
    manifest_init(&manifest, &origin, saver->config.program->graph);
    int rc = collect(saver, step, own, &manifest, &failed, err);
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
        rc = stage(saver, &report, &words);
        if (rc < 0)
            error_set(err, rc, "%s", words.text);
    }
    manifest_finish(&manifest);
    return rc;
}

static int write_own(struct saver *saver, const char *folder, struct manifest_shard *shard,
                     struct error *err)
{
    *shard = (struct manifest_shard){0};
    if (saver->slices.count == 0)
        return 0;
    int rc = folder_make_mode(folder, 0777, err);
    return rc < 0 ? rc
                  : shard_write(folder, saver->config.program->rank, saver->slices.slices,
                                saver->slices.count, saver->copy, shard, err);
}

static void free_copy(struct saver *saver)
{
    pthread_mutex_lock(&saver->lock);
    saver->filled = false;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
}

static int save(struct saver *saver, uint64_t step, double waited_s, struct error *err)
{
    const struct rendezvous *rendezvous = saver->config.rendezvous;
    char *name = checkpoint_name(step, saver->config.origin.epoch);
    char *folder = xasprintf("%s/%s", saver->root, name);
    char told[TOLD_SIZE], key[64];
    struct manifest_shard shard;
    int rc, written = write_own(saver, folder, &shard, err);
    print_told(told, &shard, written, err);
    free(shard.file);
    free_copy(saver);
    if (is_first(saver))
        rc = complete(saver, step, waited_s, folder, told, err);
    else
        rc = rendezvous->put(rendezvous->context,
                             print_key(key, sizeof key, step, saver->config.program->rank), told,
                             strlen(told), err);
    free(folder);
    free(name);
    return rc;
}

static void *run(void *context)
{
    struct saver *saver = context;
    pthread_mutex_lock(&saver->lock);
    for (;;) {
        while (!saver->filled && !saver->quit)
            pthread_cond_wait(&saver->changed, &saver->lock);
        if (saver->quit || saver->rc < 0)
            break;
        uint64_t step = saver->step;
        double waited_s = saver->waited_s;
        struct error words;
        saver->busy = true;
        pthread_mutex_unlock(&saver->lock);
        int rc = save(saver, step, waited_s, &words);
        pthread_mutex_lock(&saver->lock);
        saver->busy = false;
        if (rc < 0)
            saver->rc = error_set(&saver->words, rc, "the checkpoint of step %" PRIu64 ": %s", step,
                                  words.text);
        pthread_cond_broadcast(&saver->changed);
    }
    pthread_mutex_unlock(&saver->lock);
    return NULL;
}

static int reserve(struct saver *saver, struct error *err)
{
    char size[32];
    if (saver->slices.bytes == 0)
        return 0;
    void *copy = mmap(NULL, saver->slices.bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (copy == MAP_FAILED)
        return error_set(err, -ENOMEM, "no %s of host memory for the copy of a checkpoint",
                         units_print_bytes(size, sizeof size, (double)saver->slices.bytes));
    saver->copy = copy;
    return 0;
}

int saver_create(const struct saver_config *config, struct saver **out, struct error *err)
{
    struct saver *saver = xcalloc(1, sizeof *saver);
    saver->config = *config;
    saver->root = xstrdup(config->root);
    saver->config.origin.job = xstrdup(config->origin.job);
    pthread_mutex_init(&saver->lock, NULL);
    pthread_cond_init(&saver->changed, NULL);
    state_slices_init(&saver->slices, config->program);
    int rc = folder_make_mode(saver->root, 0777, err);
    if (rc == 0)
        rc = reserve(saver, err);
    if (rc == 0 && pthread_create(&saver->thread, NULL, run, saver) != 0)
        abort(); /* a process without threads has no memory either */
    if (rc < 0) {
        saver->quit = true;
        saver->thread = 0;
        saver_destroy(saver);
        return rc;
    }
    *out = saver;
    return 0;
}

int saver_take(struct saver *saver, uint64_t step, state_buffer_cb *buffer, void *context,
               struct error *err)
{
    double begin = now_s();
    pthread_mutex_lock(&saver->lock);
    while (saver->filled && saver->rc == 0)
        pthread_cond_wait(&saver->changed, &saver->lock);
    int rc = saver->rc;
    if (rc < 0)
        error_set(err, rc, "%s", saver->words.text);
    saver->waited_s = now_s() - begin;
    pthread_mutex_unlock(&saver->lock);
    if (rc < 0)
        return rc;
    state_copy(&saver->slices, buffer, context, saver->copy);
    pthread_mutex_lock(&saver->lock);
    saver->step = step;
    saver->filled = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
    return 0;
}

int saver_finish(struct saver *saver, struct error *err)
{
    pthread_mutex_lock(&saver->lock);
    while ((saver->filled || saver->busy) && saver->rc == 0)
        pthread_cond_wait(&saver->changed, &saver->lock);
    int rc = saver->rc;
    if (rc < 0)
        error_set(err, rc, "%s", saver->words.text);
    pthread_mutex_unlock(&saver->lock);
    return rc;
}

static char *print_end(char *key, size_t size, uint64_t step, int rank)
{
    snprintf(key, size, "saved/%" PRIu64 "/%d", step, rank);
    return key;
}

/* Rank 0 is the last to know. */
int saver_part(struct saver *saver, uint64_t step, struct error *err)
{
    const struct rendezvous *rendezvous = saver->config.rendezvous;
    int ranks = saver->config.program->ranks, rc = saver_finish(saver, err);
    char key[64], word[2] = "";
    size_t size = sizeof word;
    if (rc == 0 && !is_first(saver))
        return rendezvous->get(rendezvous->context,
                               print_end(key, sizeof key, step, saver->config.program->rank), word,
                               &size, err);
    for (int rank = 1; rank < ranks && rc == 0; rank++)
        rc = rendezvous->put(rendezvous->context, print_end(key, sizeof key, step, rank), "!", 1,
                             err);
    return rc;
}

void saver_destroy(struct saver *saver)
{
    if (!saver)
        return;
    pthread_mutex_lock(&saver->lock);
    bool waits = saver->busy || saver->filled;
    saver->quit = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
    if (waits && saver->config.abandon)
        saver->config.abandon(saver->config.context);
    if (saver->thread)
        pthread_join(saver->thread, NULL);
    if (saver->copy)
        munmap(saver->copy, saver->slices.bytes);
    state_slices_finish(&saver->slices);
    pthread_mutex_destroy(&saver->lock);
    pthread_cond_destroy(&saver->changed);
    free((char *)saver->config.origin.job);
    free(saver->root);
    free(saver);
}

uint64_t saver_bytes(const struct saver *saver)
{
    return saver->slices.bytes;
}
