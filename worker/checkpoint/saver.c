/* saver.c - one copy of the state, and the thread that has it written.
 *
 * If all cores compute, writing gets only a small share of one: a save is not urgent, but steps
 * are. (A trainer that waits for the save leaves its core to it.) Each save is written by a thread
 * of its own. Raised niceness cannot be taken back, so that thread must not outlive the save: when
 * the process is killed, its memory is returned, and its death seen, only after the last of its
 * threads got a core. */
#include "worker/checkpoint/saver.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/checkpoint/teller.h"
#include "worker/checkpoint/write.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* For setpriority(2): 1.5 % of a core that others want too. */
#define WRITER_NICENESS 19

struct saver {
    struct saver_config config;
    char *root;
    struct state_slices slices;
    void *copy;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct teller *teller;
    bool filled; /* the copy holds a step that is not on disk */
    bool busy, quit;
    uint64_t step; /* step in the copy; 0: none yet */
    double waited_s;
};

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

/* On Linux each thread has its own niceness. If we were started with a larger one, that is kept. */
static void step_back(void)
{
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, 0);
    if (errno == 0 && nice < WRITER_NICENESS)
        setpriority(PRIO_PROCESS, 0, WRITER_NICENESS);
}

static void save(struct saver *saver)
{
    uint64_t step = saver->step; /* the next save waits until the copy is free */
    double waited_s = saver->waited_s;
    char *name = checkpoint_name(step, saver->config.origin.epoch);
    char *folder = xasprintf("%s/%s", saver->root, name);
    struct manifest_shard shard;
    struct error why;
    int rc = write_own(saver, folder, &shard, &why);
    free_copy(saver);
    teller_add(saver->teller, step, folder, waited_s, &shard, rc, &why);
    free(shard.file);
    free(folder);
    free(name);
}

static void *save_aside(void *saver)
{
    step_back();
    save(saver);
    return NULL;
}

static void *run(void *context)
{
    struct saver *saver = context;
    pthread_t writer;
    pthread_mutex_lock(&saver->lock);
    for (;;) {
        while (!saver->filled && !saver->quit)
            pthread_cond_wait(&saver->changed, &saver->lock);
        if (saver->quit)
            break;
        saver->busy = true;
        pthread_mutex_unlock(&saver->lock);
        if (pthread_create(&writer, NULL, save_aside, saver) == 0)
            pthread_join(writer, NULL);
        else
            save(saver); /* there is no thread to be had: save at the usual niceness */
        pthread_mutex_lock(&saver->lock);
        saver->busy = false;
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
        return error_set(err, -ENOBUFS, "no %s of host memory for the copy of a checkpoint",
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
    saver->teller = teller_create(&saver->config, saver->root);
    if (rc == 0 && pthread_create(&saver->thread, NULL, run, saver) != 0)
        abort(); /* a process that cannot have a thread is out of memory too */
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
    double begin = clock_now_s();
    int rc = teller_failed(saver->teller, err);
    if (rc < 0 || step == saver->step)
        return rc;
    pthread_mutex_lock(&saver->lock);
    while (saver->filled)
        pthread_cond_wait(&saver->changed, &saver->lock);
    saver->waited_s = clock_now_s() - begin;
    pthread_mutex_unlock(&saver->lock);
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
    while (saver->filled || saver->busy)
        pthread_cond_wait(&saver->changed, &saver->lock);
    pthread_mutex_unlock(&saver->lock);
    return teller_finish(saver->teller, err);
}

static char *print_end(char *key, size_t size, uint64_t step, int rank)
{
    snprintf(key, size, "saved/%" PRIu64 "/%d", step, rank);
    return key;
}

/* Rank 0 knows first, and tells the others. */
int saver_part(struct saver *saver, uint64_t step, bool *listed, struct error *err)
{
    const struct rendezvous *rendezvous = saver->config.rendezvous;
    int ranks = saver->config.program->ranks, rc = saver_finish(saver, err);
    char key[64], word = '-';
    size_t size = sizeof word;
    if (rc == 0 && saver->config.program->rank != 0) {
        print_end(key, sizeof key, step, saver->config.program->rank);
        rc = rendezvous->get(rendezvous->context, key, &word, &size, err);
    } else if (rc == 0) {
        word = teller_listed(saver->teller) == step ? '+' : '-';
    }
    for (int rank = 1; saver->config.program->rank == 0 && rank < ranks && rc == 0; rank++)
        rc = rendezvous->put(rendezvous->context, print_end(key, sizeof key, step, rank), &word, 1,
                             err);
    *listed = word == '+';
    return rc;
}

void saver_destroy(struct saver *saver)
{
    if (!saver)
        return;
    pthread_mutex_lock(&saver->lock);
    saver->quit = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
    if (saver->thread)
        pthread_join(saver->thread, NULL);
    teller_destroy(saver->teller);
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
