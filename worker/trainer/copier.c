/* copier.c - a thread that sleeps until there is a state to copy. */
#include "worker/trainer/copier.h"

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct copier {
    struct copier_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy, stopping;
    struct standing standing; /* of the state that is being copied */
    int rc;                   /* of the copies that failed */
    struct error err;
};

static uint64_t now_ms(void)
{
    return (uint64_t)(clock_now_s() * 1e3);
}

/* All ranks copy after the same steps, so in the trail this is one exchange of all of them. It is
 * numbered by the step, so that one of an earlier epoch is not taken for it. */
static void enter(const struct copier *copier)
{
    const struct trail_call call = {
        .kind = TRAIL_EXCHANGES,
        .group = hash_number(HASH_START, TRAIL_COPIES),
        .number = copier->standing.step,
        .step = copier->standing.step,
        .entered_ms = now_ms(),
        .name = "copies of the state",
    };
    trail_enter(copier->config.trail, TRAIL_COPIES, &call);
}

static int copy(const struct copier *copier, struct error *err)
{
    const struct copier_config *config = &copier->config;
    enter(copier);
    int rc = interpreter_fetch_state_beside(config->in, err);
    if (rc == 0)
        rc = copies_take(config->copies, config->state, &copier->standing, err);
    trail_leave(config->trail, TRAIL_COPIES, now_ms());
    return rc;
}

static void *copier_run(void *context)
{
    struct copier *copier = context;
    pthread_mutex_lock(&copier->lock);
    for (;;) {
        while (!copier->busy && !copier->stopping)
            pthread_cond_wait(&copier->changed, &copier->lock);
        if (!copier->busy)
            break;
        pthread_mutex_unlock(&copier->lock);
        struct error err = {""};
        int rc = copy(copier, &err);
        pthread_mutex_lock(&copier->lock);
        copier->rc = rc;
        copier->err = err;
        copier->busy = false;
        pthread_cond_broadcast(&copier->changed);
    }
    pthread_mutex_unlock(&copier->lock);
    return NULL;
}

int copier_open(const struct copier_config *config, struct copier **out, struct error *err)
{
    struct copier *copier = xcalloc(1, sizeof *copier);
    copier->config = *config;
    pthread_mutex_init(&copier->lock, NULL);
    pthread_cond_init(&copier->changed, NULL);
    int rc = pthread_create(&copier->thread, NULL, copier_run, copier);
    if (rc != 0) {
        pthread_cond_destroy(&copier->changed);
        pthread_mutex_destroy(&copier->lock);
        free(copier);
        return error_set(err, -rc, "no thread for the copies of the state: %s", strerror(rc));
    }
    *out = copier;
    return 0;
}

void copier_begin(struct copier *copier)
{
    pthread_mutex_lock(&copier->lock);
    assert(!copier->busy && copier->rc == 0);
    copier->standing = *interpreter_standing(copier->config.in);
    copier->busy = true;
    pthread_cond_broadcast(&copier->changed);
    pthread_mutex_unlock(&copier->lock);
}

int copier_failed(struct copier *copier, struct error *err)
{
    if (!copier)
        return 0;
    pthread_mutex_lock(&copier->lock);
    int rc = copier->rc < 0 ? error_set(err, copier->rc, "%s", copier->err.text) : 0;
    pthread_mutex_unlock(&copier->lock);
    return rc;
}

int copier_await(struct copier *copier, struct error *err)
{
    if (!copier)
        return 0;
    pthread_mutex_lock(&copier->lock);
    while (copier->busy)
        pthread_cond_wait(&copier->changed, &copier->lock);
    pthread_mutex_unlock(&copier->lock);
    return copier_failed(copier, err);
}

void copier_close(struct copier *copier)
{
    if (!copier)
        return;
    pthread_mutex_lock(&copier->lock);
    copier->stopping = true;
    pthread_cond_broadcast(&copier->changed);
    pthread_mutex_unlock(&copier->lock);
    pthread_join(copier->thread, NULL);
    pthread_cond_destroy(&copier->changed);
    pthread_mutex_destroy(&copier->lock);
    free(copier);
}
