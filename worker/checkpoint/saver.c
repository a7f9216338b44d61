/* saver.c - one copy of the state, the thread that has it written, and the thread that tells of it.
 *
 * If all cores compute, writing gets only a small share of one: a save is not urgent, but steps
 * are. (A trainer that waits for the save leaves its core to it.) Each save is written by a thread
 * of its own. Raised niceness cannot be taken back, so that thread must not outlive the save: when
 * the process is killed, its memory is returned, and its death seen, only after the last of its
 * threads got a core.
 *
 * The teller is a thread with a queue, which exchanges between ranks what they know of their
 * shards, and completes checkpoints. This needs a coordinator, while writing shards does not. So
 * while none is reachable, shards are still written, their reports wait here in order, and training
 * goes on. */
#include "worker/checkpoint/saver.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Size of a rank's report to rank 0: three numbers; or "!", the errno and the reason why it has no
 * shard. */
#define TOLD_SIZE 2048

struct teller_entry {
    uint64_t step;
    char *folder;
    double waited_s;
    char told[TOLD_SIZE];
    struct teller_entry *next;
};

struct teller {
    const struct saver_config *config;
    const char *root;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct teller_entry *first, **last; /* the first is being reported */
    bool quit;
    uint64_t listed;      /* see teller_listed */
    struct error failure; /* rank 0: why the newest checkpoint is not */
    int rc;               /* how the thread ended */
    struct error words;
};

static char *print_told_key(char *key, size_t size, uint64_t step, int rank)
{
    snprintf(key, size, "kept/checkpoint/%" PRIu64 "/%d", step, rank);
    return key;
}

static void print_told(char *told, const struct manifest_shard *shard, int rc,
                       const struct error *err)
{
    if (rc < 0)
        snprintf(told, TOLD_SIZE, "!%d %s", -rc, err->text);
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

/* Fail as the rank did. One of another release says only why. */
static int fail_told(int rank, const char *told, struct error *err)
{
    char *words;
    long number = strtol(told, &words, 10);
    return error_set(err, number > 0 ? (int)-number : -EIO, "rank %d: %s", rank,
                     words + strspn(words, " "));
}

/* Add a rank's shard to the manifest, or fail with the rank's reason. */
static int add_told(struct manifest *manifest, const char *folder, int rank, char *told,
                    struct error *err)
{
    char file[64];
    struct manifest_shard shard = {.file = file};
    snprintf(file, sizeof file, "rank-%05d.safetensors", rank);
    if (told[0] == '!')
        return fail_told(rank, told + 1, err);
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
static int teller_collect(const struct teller *teller, uint64_t step, const char *folder, char *own,
                          struct manifest *manifest, int *failed, struct error *err)
{
    const struct rendezvous *rendezvous = teller->config->rendezvous;
    *failed = add_told(manifest, folder, 0, own, err);
    for (int rank = 1; rank < teller->config->program->ranks; rank++) {
        char key[64], told[TOLD_SIZE + 1] = "";
        size_t size = TOLD_SIZE;
        struct error words;
        int rc = rendezvous->get(rendezvous->context, print_told_key(key, sizeof key, step, rank),
                                 told, &size, &words);
        if (rc < 0)
            return error_set(err, rc, "%s", words.text);
        told[size] = '\0';
        rc = add_told(manifest, folder, rank, told, &words);
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
static int teller_stage(struct teller *teller, const struct saver_report *report, struct error *err)
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

/* failure: why this step is not listed; NULL: it is. */
static void teller_note(struct teller *teller, uint64_t step, const struct error *failure)
{
    pthread_mutex_lock(&teller->lock);
    if (failure)
        teller->failure = *failure;
    else
        teller->listed = step;
    pthread_mutex_unlock(&teller->lock);
}

static bool is_no_space(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT;
}

/* Rank 0: write the manifest once all shards are there, and stage the checkpoint. */
static int teller_complete(struct teller *teller, uint64_t step, double waited_s,
                           const char *folder, char *own, struct error *err)
{
    struct manifest manifest;
    struct manifest_origin origin = teller->config->origin;
    int failed;
    origin.step = step;
    origin.samples = step * origin.batch + teller->config->shift;
    manifest_init(&manifest, &origin, teller->config->program->graph);
    int rc = teller_collect(teller, step, folder, own, &manifest, &failed, err);
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
            .last = step == teller->config->last_step,
            .failure = failed < 0 ? err->text : NULL,
            .no_space = is_no_space(failed),
        };
        struct error words;
        rc = teller_stage(teller, &report, &words);
        if (rc != 0)
            error_set(err, rc, "%s", words.text);
        if (rc >= 0)
            teller_note(teller, step, failed < 0 || rc > 0 ? err : NULL);
    }
    manifest_finish(&manifest);
    return rc < 0 ? rc : 0;
}

/* Rank 0 waits for the others; the others only for the rendezvous. */
static int teller_tell(struct teller *teller, struct teller_entry *teller_entry, struct error *err)
{
    const struct rendezvous *rendezvous = teller->config->rendezvous;
    int rank = teller->config->program->rank;
    char key[64];
    if (rank == 0)
        return teller_complete(teller, teller_entry->step, teller_entry->waited_s,
                               teller_entry->folder, teller_entry->told, err);
    return rendezvous->put(rendezvous->context,
                           print_told_key(key, sizeof key, teller_entry->step, rank),
                           teller_entry->told, strlen(teller_entry->told), err);
}

static void teller_drop(struct teller *teller)
{
    struct teller_entry *teller_entry = teller->first;
    teller->first = teller_entry->next;
    if (!teller->first)
        teller->last = &teller->first;
    free(teller_entry->folder);
    free(teller_entry);
}

static void *teller_run(void *context)
{
    struct teller *teller = context;
    pthread_mutex_lock(&teller->lock);
    for (;;) {
        while (!teller->first && !teller->quit)
            pthread_cond_wait(&teller->changed, &teller->lock);
        if (teller->quit)
            break;
        struct teller_entry *teller_entry = teller->first;
        struct error words;
        pthread_mutex_unlock(&teller->lock);
        int rc = teller_tell(teller, teller_entry, &words);
        pthread_mutex_lock(&teller->lock);
        if (rc < 0)
            teller->rc = error_set(&teller->words, rc, "the checkpoint of step %" PRIu64 ": %s",
                                   teller_entry->step, words.text);
        teller_drop(teller);
        pthread_cond_broadcast(&teller->changed);
        if (rc < 0)
            break;
    }
    pthread_mutex_unlock(&teller->lock);
    return NULL;
}

/* The arguments are lent until teller_destroy. */
static struct teller *teller_create(const struct saver_config *config, const char *root)
{
    struct teller *teller = xcalloc(1, sizeof *teller);
    teller->config = config;
    teller->root = root;
    teller->last = &teller->first;
    pthread_mutex_init(&teller->lock, NULL);
    pthread_cond_init(&teller->changed, NULL);
    if (pthread_create(&teller->thread, NULL, teller_run, teller) != 0)
        abort(); /* a process that cannot have a thread is out of memory too */
    return teller;
}

/* Add this rank's shard of `step`, which lies in `folder`; or rc < 0 and the reason why there is
 * none. Arguments are copied. Does not block. */
static void teller_add(struct teller *teller, uint64_t step, const char *folder, double waited_s,
                       const struct manifest_shard *shard, int rc, const struct error *why)
{
    struct teller_entry *teller_entry = xcalloc(1, sizeof *teller_entry);
    teller_entry->step = step;
    teller_entry->folder = xstrdup(folder);
    teller_entry->waited_s = waited_s;
    print_told(teller_entry->told, shard, rc, why);
    pthread_mutex_lock(&teller->lock);
    *teller->last = teller_entry;
    teller->last = &teller_entry->next;
    pthread_cond_broadcast(&teller->changed);
    pthread_mutex_unlock(&teller->lock);
}

/* Needs the lock. */
static int teller_end(const struct teller *teller, struct error *err)
{
    return teller->rc < 0 ? error_set(err, teller->rc, "%s", teller->words.text) : 0;
}

/* 0, or the error with which the thread has ended, because what it waited for was cancelled. */
static int teller_failed(struct teller *teller, struct error *err)
{
    pthread_mutex_lock(&teller->lock);
    int rc = teller_end(teller, err);
    pthread_mutex_unlock(&teller->lock);
    return rc;
}

/* Rank 0: the newest step whose checkpoint is listed; 0: none. *failure: why a newer one is not. */
static uint64_t teller_listed(struct teller *teller, struct error *failure)
{
    pthread_mutex_lock(&teller->lock);
    uint64_t step = teller->listed;
    *failure = teller->failure;
    pthread_mutex_unlock(&teller->lock);
    return step;
}

/* Block until everything that was added has been reported and listed. Errors as teller_failed. */
static int teller_finish(struct teller *teller, struct error *err)
{
    pthread_mutex_lock(&teller->lock);
    while (teller->first && teller->rc == 0)
        pthread_cond_wait(&teller->changed, &teller->lock);
    int rc = teller_end(teller, err);
    pthread_mutex_unlock(&teller->lock);
    return rc;
}

/* End the thread; what is not reported by then never will be. Accepts NULL. */
static void teller_destroy(struct teller *teller)
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
        teller_drop(teller);
    pthread_mutex_destroy(&teller->lock);
    pthread_cond_destroy(&teller->changed);
    free(teller);
}

/* For setpriority(2): 1.5 % of a core that others want too. */
#define WRITER_NICENESS 19

struct saver {
    struct saver_config config;
    char *root;
    struct state_list slices;
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

static void saver_save(struct saver *saver)
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

static void *saver_save_aside(void *saver)
{
    step_back();
    saver_save(saver);
    return NULL;
}

static void *saver_run(void *context)
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
        if (pthread_create(&writer, NULL, saver_save_aside, saver) == 0)
            pthread_join(writer, NULL);
        else
            saver_save(saver); /* there is no thread to be had: save at the usual niceness */
        pthread_mutex_lock(&saver->lock);
        saver->busy = false;
        pthread_cond_broadcast(&saver->changed);
    }
    pthread_mutex_unlock(&saver->lock);
    return NULL;
}

static int saver_reserve(struct saver *saver, struct error *err)
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
    saver->config.origin.spec = config->origin.spec ? xstrdup(config->origin.spec) : NULL;
    pthread_mutex_init(&saver->lock, NULL);
    pthread_cond_init(&saver->changed, NULL);
    state_list_init(&saver->slices, config->program);
    int rc = folder_make_mode(saver->root, 0777, err);
    if (rc == 0)
        rc = saver_reserve(saver, err);
    saver->teller = teller_create(&saver->config, saver->root);
    if (rc == 0 && pthread_create(&saver->thread, NULL, saver_run, saver) != 0)
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
    double begin = clock_s();
    int rc = teller_failed(saver->teller, err);
    if (rc < 0 || step == saver->step)
        return rc;
    pthread_mutex_lock(&saver->lock);
    while (saver->filled)
        pthread_cond_wait(&saver->changed, &saver->lock);
    saver->waited_s = clock_s() - begin;
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

/* ---- the end, at which all ranks wait for the checkpoint ----
 *
 * Rank 0 knows first what has become of it, and tells the others a word: */

#define WORD_LISTED '+'
#define WORD_UNSAVED '-' /* and, in saver_last, that it is tried again */
#define WORD_STOP '.'
#define WORD_GIVE_UP '!' /* and the reason behind it */

struct saver_word {
    char text[TOLD_SIZE + 1];
};

static char *print_end_key(char *key, size_t size, uint64_t step, int rank, uint64_t attempt)
{
    if (attempt == 0)
        snprintf(key, size, "saved/%" PRIu64 "/%d", step, rank);
    else
        snprintf(key, size, "saved/%" PRIu64 "/%d/%" PRIu64, step, rank, attempt);
    return key;
}

static int saver_share(const struct saver *saver, uint64_t step, uint64_t attempt,
                       struct saver_word *word, struct error *err)
{
    const struct rendezvous *rendezvous = saver->config.rendezvous;
    int own = saver->config.program->rank, ranks = saver->config.program->ranks, rc = 0;
    size_t size = TOLD_SIZE;
    char key[96];
    if (own != 0) {
        rc =
            rendezvous->get(rendezvous->context, print_end_key(key, sizeof key, step, own, attempt),
                            word->text, &size, err);
        word->text[rc == 0 ? size : 0] = '\0';
    }
    for (int rank = 1; own == 0 && rank < ranks && rc == 0; rank++)
        rc = rendezvous->put(rendezvous->context,
                             print_end_key(key, sizeof key, step, rank, attempt), word->text,
                             strlen(word->text), err);
    return rc;
}

int saver_part(struct saver *saver, uint64_t step, bool *listed, struct error *err)
{
    struct saver_word word;
    struct error ignored;
    int rc = saver_finish(saver, err);
    bool here = rc == 0 && saver->config.program->rank == 0;
    snprintf(word.text, sizeof word.text, "%c",
             here && teller_listed(saver->teller, &ignored) == step ? WORD_LISTED : WORD_UNSAVED);
    if (rc == 0)
        rc = saver_share(saver, step, 0, &word, err);
    *listed = word.text[0] == WORD_LISTED;
    return rc;
}

/* On rank 0. */
static int saver_judge(struct saver *saver, uint64_t step, uint64_t attempt,
                       struct saver_word *word, struct error *err)
{
    static const char words[] = {
        [SAVER_AGAIN] = WORD_UNSAVED, [SAVER_STOP] = WORD_STOP, [SAVER_GIVE_UP] = WORD_GIVE_UP};
    struct error why;
    int verdict = SAVER_AGAIN;
    bool listed = teller_listed(saver->teller, &why) == step;
    if (!listed)
        verdict = saver->config.unsaved ? saver->config.unsaved(saver->config.context, err)
                                        : SAVER_GIVE_UP;
    if (verdict < 0)
        return verdict;
    snprintf(word->text, sizeof word->text, "%c", listed ? WORD_LISTED : words[verdict]);
    if (verdict == SAVER_GIVE_UP)
        snprintf(word->text, sizeof word->text,
                 "%cthe last step, %" PRIu64 ", could not be saved, tried %" PRIu64 " times: %s",
                 WORD_GIVE_UP, step, attempt + 1, why.text);
    return 0;
}

/* The copy is still that of the last step. */
static void saver_write_again(struct saver *saver)
{
    pthread_mutex_lock(&saver->lock);
    saver->waited_s = 0;
    saver->filled = true;
    pthread_cond_broadcast(&saver->changed);
    pthread_mutex_unlock(&saver->lock);
}

int saver_last(struct saver *saver, uint64_t step, struct error *err)
{
    for (uint64_t attempt = 0;; attempt++) {
        struct saver_word word = {""};
        int rc = saver_finish(saver, err);
        if (rc == 0 && saver->config.program->rank == 0)
            rc = saver_judge(saver, step, attempt, &word, err);
        if (rc == 0)
            rc = saver_share(saver, step, attempt, &word, err);
        if (rc < 0 || word.text[0] == WORD_LISTED)
            return rc;
        if (word.text[0] == WORD_STOP)
            return 1;
        if (word.text[0] == WORD_GIVE_UP)
            return error_set(err, -ENOTRECOVERABLE, "%s", word.text + 1);
        saver_write_again(saver);
    }
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
    state_list_finish(&saver->slices);
    pthread_mutex_destroy(&saver->lock);
    pthread_cond_destroy(&saver->changed);
    free((char *)saver->config.origin.job);
    free((char *)saver->config.origin.spec);
    free(saver->root);
    free(saver);
}

uint64_t saver_bytes(const struct saver *saver)
{
    return saver->slices.bytes;
}

#define TOKEN_SIZE 17
#define SHARED_KEY "kept/shared"

static int put_token(const struct saver_folder *test, const char *key, const char *value,
                     struct error *err)
{
    return test->rendezvous->put(test->rendezvous->context, key, value, strlen(value), err);
}

static int get_token(const struct saver_folder *test, const char *key, char value[TOKEN_SIZE],
                     struct error *err)
{
    size_t size = TOKEN_SIZE - 1;
    int rc = test->rendezvous->get(test->rendezvous->context, key, value, &size, err);
    value[rc == 0 ? size : 0] = '\0';
    return rc;
}

static char *print_seen_key(char *key, size_t size, int rank)
{
    snprintf(key, size, SHARED_KEY "/%d", rank);
    return key;
}

/* Write the token, and remove it only after all others have looked. */
static int show_token(const struct saver_folder *test, const char *path, struct error *err)
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
        rc = put_token(test, SHARED_KEY, token, err);
    for (int rank = 1; rank < test->ranks && rc == 0; rank++)
        rc = get_token(test, print_seen_key(key, sizeof key, rank), token, err);
    unlink(path);
    return rc;
}

static int look_for_token(const struct saver_folder *test, const char *path, struct error *err)
{
    char token[TOKEN_SIZE], key[64], *text = NULL;
    struct error words;
    int rc = get_token(test, SHARED_KEY, token, err);
    if (rc < 0)
        return rc;
    bool same = file_read(path, &text, &words) == 0 && strcmp(text, token) == 0;
    free(text);
    rc = put_token(test, print_seen_key(key, sizeof key, test->rank), "looked", err);
    if (rc == 0 && !same)
        rc = error_set(err, -EXDEV,
                       "node '%s' does not find in '%s' what node '%s' wrote there: "
                       "checkpoint.dir must be one directory that all nodes share",
                       test->node, test->folder, test->first);
    return rc;
}

int saver_check_folder(const struct saver_folder *test, struct error *err)
{
    if (test->ranks == 1)
        return 0;
    char *path = xasprintf("%s/.shared-%" PRIu64, test->folder, test->epoch);
    int rc = test->rank == 0 ? show_token(test, path, err) : look_for_token(test, path, err);
    free(path);
    return rc;
}
