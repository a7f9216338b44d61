/* searching.c - a thread beside the search shows its progress in a line on stderr. */
#include "coordinator/cli/plans/searching.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/cli/following/progress.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define FIRST_NS 2000000000L /* nothing is shown of searches that end sooner */
#define AGAIN_NS 500000000L

struct searching {
    struct planner_progress *search;
    struct progress progress;
    double begin_s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
};

/* As in "searching for a plan: 12 s, 43k programs priced, a step of 6.81 s so far". */
static void show(struct searching *searching)
{
    char line[160], count[16], step[48] = "", seconds[32];
    double now_s = clock_now_s();
    double best_s = atomic_load_explicit(&searching->search->best_s, memory_order_relaxed);
    size_t work = atomic_load_explicit(&searching->search->work, memory_order_relaxed);
    if (best_s > 0)
        snprintf(step, sizeof step, ", a step of %s so far",
                 units_print_seconds(seconds, sizeof seconds, best_s));
    snprintf(line, sizeof line, "searching for a plan: %.0f s, %s programs priced%s",
             now_s - searching->begin_s, progress_format_count(count, sizeof count, (double)work),
             step);
    progress_show(&searching->progress, line, now_s);
}

/* Returns true once the search is over, false after wait_ns. */
static bool await_end(struct searching *searching, long wait_ns)
{
    struct timespec until;
    int rc = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&searching->lock);
    while (!searching->over && rc == 0)
        rc = pthread_cond_timedwait(&searching->changed, &searching->lock, &until);
    bool over = searching->over;
    pthread_mutex_unlock(&searching->lock);
    return over;
}

static void *run(void *context)
{
    struct searching *searching = context;
    for (long wait_ns = FIRST_NS; !await_end(searching, wait_ns); wait_ns = AGAIN_NS)
        show(searching);
    return NULL;
}

static void finish(struct searching *searching)
{
    pthread_cond_destroy(&searching->changed);
    pthread_mutex_destroy(&searching->lock);
    free(searching);
}

struct searching *searching_begin(struct planner_progress *progress)
{
    struct searching *searching = xcalloc(1, sizeof *searching);
    pthread_condattr_t attributes;
    searching->search = progress;
    searching->begin_s = clock_now_s();
    progress_open(&searching->progress, stderr, false);
    pthread_mutex_init(&searching->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&searching->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&searching->thread, NULL, run, searching) == 0)
        return searching;
    finish(searching);
    return NULL;
}

void searching_end(struct searching *searching)
{
    if (!searching)
        return;
    pthread_mutex_lock(&searching->lock);
    searching->over = true;
    pthread_cond_signal(&searching->changed);
    pthread_mutex_unlock(&searching->lock);
    pthread_join(searching->thread, NULL);
    progress_clear(&searching->progress);
    finish(searching);
}
