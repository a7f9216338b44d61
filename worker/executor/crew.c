/* crew.c - a thread per rank: join the fabrics, train, and end in the right order. */
#include "worker/executor/crew.h"

#include "common/base/memory.h"
#include "common/models/model.h"
#include "worker/checkpoint/saver.h"
#include "worker/executor/fabrics.h"
#include "worker/scalars/scalars.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int work_fault(int rc)
{
    bool of_job =
        rc == -ENOENT || rc == -ENOTDIR || rc == -EACCES || rc == -EINVAL || rc == -ERANGE;
    return of_job ? -ENODATA : rc;
}

int work_open(struct work *work, struct error *err)
{
    const struct job_model *model = &work->job->model;
    int rc = model_build(model, work->job->train.dtype, &work->graph, err);
    if (rc == 0)
        rc = work_fault(tokenizer_open_job(work->job, &work->tokenizer, err));
    int64_t known = work->tokenizer ? tokenizer_size(work->tokenizer) : 0;
    if (rc == 0)
        rc = work_fault(data_open(work->job, known, &work->data, err));
    if (rc == 0 && model->weights)
        rc =
            work_fault(pretrained_open(model->weights, model, work->graph, &work->pretrained, err));
    if (rc == 0 && work->pretrained)
        pretrained_compare(work->pretrained, work->job, work->tokenizer);
    return rc;
}

void work_close(struct work *work)
{
    free(work->files);
    tokenizer_close(work->tokenizer);
    pretrained_close(work->pretrained);
    data_close(work->data);
    plan_destroy(work->plan);
    graph_destroy(work->graph);
    job_config_destroy(work->job);
    local_hub_destroy(work->hub);
    session_destroy(work->session);
    trail_close(work->trainer.trail);
}

/* What the ranks learn from, as checkpoints have it. */
static size_t work_list_files(struct work *work)
{
    const struct data_file *from;
    size_t count = session_data_files(work->session, &from);
    free(work->files);
    work->files = xcalloc(count, sizeof *work->files);
    for (size_t i = 0; i < count; i++)
        work->files[i] = (struct manifest_file){from[i].path, from[i].size, from[i].hash};
    return count;
}

static const char *node_of(const Gimbal__Assignment *assignment, uint32_t rank)
{
    for (size_t i = 0; i < assignment->n_ranks; i++)
        if (assignment->ranks[i]->rank == rank)
            return assignment->ranks[i]->node;
    return "?";
}

/* Check early, before anything is prepared, that all nodes see the same checkpoint folder. Without
 * a cluster there is one. */
static int check_shared(struct member *member, struct error *err)
{
    const struct work *work = member->work;
    if (!work->saving.root || !work->assignment)
        return 0;
    const struct saver_folder test = {
        .folder = work->saving.root,
        .epoch = work->saving.origin.epoch,
        .rank = member->rank,
        .ranks = plan_ranks(work->plan),
        .node = node_of(work->assignment, (uint32_t)member->rank),
        .first = node_of(work->assignment, 0),
        .rendezvous = &work->rendezvous,
    };
    return saver_check_folder(&test, err);
}

/* Ranks that only give state come after those of the plan, and are in the meeting's fabric
 * alone. */
static int crew_open_and_train(const struct member *member, struct fabrics *fabrics,
                               struct trainer_config *trainer, struct error *err)
{
    int rc = fabrics_open(fabrics, member, trainer->givers, err);
    trainer->fabric = fabrics->host.fabric;
    trainer->program_collectives = fabrics->program.library;
    trainer->program_fabric = fabrics->program.fabric;
    trainer->meeting = fabrics->everybody.fabric;
    if (rc == 0)
        rc = hosts_measure(member, fabrics, err);
    if (rc < 0)
        return rc;
    return member->rank < plan_ranks(member->work->plan) ? trainer_run(trainer, err)
                                                         : trainer_give(trainer, err);
}

/* What rank 0 writes for other programs, NULL: nothing. */
static struct scalars *crew_scalars(const struct work *work)
{
    const struct job_config *job = work->job;
    char division[64], plan[128];
    snprintf(plan, sizeof plan, "%s, %s on %d device%s", work->plan->id,
             plan_print(division, sizeof division, work->plan), plan_ranks(work->plan),
             plan_ranks(work->plan) == 1 ? "" : "s");
    const struct scalars_config config = {
        .log = &job->log,
        .name = job->name,
        .job = session_job(work->session),
        .epoch = session_epoch(work->session),
        .plan = plan,
        .predicted_s = work->plan->predicted.step_time_s,
        .tokens = (uint64_t)(job->train.global_batch * job->model.seq),
        .optimizer = trainer_optimizer(job),
    };
    return scalars_create(&config);
}

/* As the plan assumed. A coordinator that does not know it sends 0, and the job's setting
 * counts. */
static uint64_t copy_interval(const struct work *work)
{
    uint64_t planned = work->assignment ? work->assignment->copy_every : 0;
    uint64_t wished = (uint64_t)work->job->elastic.copy_every;
    if (work->assignment && work->assignment->no_copies)
        return 0;
    return wished > 0 && planned > 0 ? planned : wished;
}

static int crew_train(struct member *member, struct fabrics *fabrics, struct error *err)
{
    struct work *work = member->work;
    struct trainer_config trainer = work->trainer;
    trainer.job = work->job;
    trainer.graph = work->graph;
    trainer.plan = work->plan;
    trainer.data = work->data;
    trainer.pretrained = work->pretrained;
    trainer.tokenizer = work->tokenizer;
    trainer.reporter = &work->reporter;
    trainer.rank = member->rank;
    trainer.epoch = session_epoch(work->session);
    trainer.nodes = work->nodes;
    trainer.copy_every = copy_interval(work);
    trainer.saving = work->saving.root ? &work->saving : NULL;
    trainer.save_every_s = CHECKPOINT_EVERY_S;
    /* A coordinator counts them itself, and goes back to a checkpoint. */
    trainer.max_skipped = work->assignment ? 0 : (uint64_t)work->job->elastic.max_skipped;
    struct scalars *scalars = member->rank == 0 ? crew_scalars(work) : NULL;
    if (member->rank == 0)
        session_write_scalars(work->session, scalars);
    int rc = member->rank < plan_ranks(work->plan) ? check_shared(member, err) : 0;
    if (rc == 0)
        rc = crew_open_and_train(member, fabrics, &trainer, err);
    if (member->rank == 0)
        session_write_scalars(work->session, NULL);
    scalars_destroy(scalars);
    return rc;
}

bool crew_stays(const struct work *work, int rc)
{
    bool by_others = rc == -ECONNRESET || rc == -ECANCELED || rc == -ETIMEDOUT;
    const struct session_state state = session_state(work->session);
    return work->trainer.kept && (by_others || rc == 0) && !state.cancelled && !state.wants_end;
}

/* The text at the end is written by rank 0, when the others have given it what they have. */
static bool crew_has_finished(const struct work *work, int rank, int rc)
{
    bool trains = rank < plan_ranks(work->plan);
    return rc == 0 && trains && (rank == 0 || work->job->eval.sample == 0);
}

/* Whether this rank fails on its own. A rank that was cancelled after go stopped together with the
 * others, who may still have to receive what it sent. */
static bool ends_alone(const struct work *work, int rc)
{
    return rc < 0 && (rc != -ECANCELED || !session_state(work->session).goes);
}

/* Closing a fabric may wait until other ranks on this host leave it too, and they do not know yet
 * of a rank that fails alone. So such a rank reports its end first, unless the process stays: then
 * it must have left the fabrics by the time the other side hears of it. */
static void crew_leave(const struct member *member, struct fabrics *fabrics, int rc,
                       const struct error *err)
{
    struct work *work = member->work;
    bool alone = ends_alone(work, rc), first = alone && !crew_stays(work, rc);
    if (alone)
        fabrics_abort(fabrics);
    if (!first)
        fabrics_close(fabrics);
    const struct rank_end end = {rc, err, !first && crew_stays(work, rc),
                                 crew_has_finished(work, member->rank, rc)};
    session_stopped(work->session, member->rank, &end);
    if (first)
        fabrics_close(fabrics);
}

static void *crew_run_rank(void *context)
{
    struct member *member = context;
    struct work *work = member->work;
    struct fabrics fabrics = {0};
    struct error err = {""};
    int threads = CPU_COUNT(&member->cores), rc = 0;
    if (member->bind)
        rc = cpuset_bind(&member->cores, &threads, &err);
    device_cpu.threads(threads);
    if (rc == 0)
        rc = crew_train(member, &fabrics, &err);

    pthread_mutex_lock(&work->lock);
    bool first = rc < 0 && work->rc == 0;
    if (first)
        work->rc = error_set(work->err, session_state(work->session).cancelled ? -ECANCELED : rc,
                             "%s", err.text);
    pthread_mutex_unlock(&work->lock);
    crew_leave(member, &fabrics, rc, &err);
    if (first)
        session_abort(work->session);
    pthread_mutex_lock(&work->lock);
    bool last = --work->running == 0;
    pthread_mutex_unlock(&work->lock);
    if (last)
        session_finish(work->session);
    return NULL;
}

int crew_run(struct work *work, struct member *members, int count, struct error *err)
{
    pthread_mutex_init(&work->lock, NULL);
    work->trainer.file_count = work_list_files(work);
    work->trainer.files = work->files;
    work->running = count;
    work->err = err;
    for (int i = 0; i < count; i++)
        if (pthread_create(&members[i].thread, NULL, crew_run_rank, &members[i]) != 0)
            abort(); /* a process that cannot have a thread is out of memory too */
    session_serve(work->session);
    for (int i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
    pthread_mutex_destroy(&work->lock);
    return work->rc;
}

int crew_refuse(struct work *work, int rank, int rc, const struct error *err)
{
    session_stopped(work->session, rank, &(struct rank_end){.rc = rc, .err = err});
    work_close(work);
    return rc;
}
