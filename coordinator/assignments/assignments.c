/* assignments.c - packs each record once and appends it to the streams of the workers concerned. */
#include "coordinator/assignments/assignments.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "proto/worker.pb-c.h"

#include <stdlib.h>

struct post {
    uint64_t instance;
    struct stream *stream; /* NULL: closed, which was not reported yet */
    bool changed;
};

struct assignments {
    uint64_t term;
    struct post *posts;
    size_t count, capacity;
};

struct assignments *assignments_create(uint64_t term)
{
    struct assignments *assignments = xcalloc(1, sizeof *assignments);
    assignments->term = term;
    return assignments;
}

void assignments_destroy(struct assignments *assignments)
{
    if (!assignments)
        return;
    for (size_t i = 0; i < assignments->count; i++)
        stream_destroy(assignments->posts[i].stream);
    free(assignments->posts);
    free(assignments);
}

static struct post *assignments_find(const struct assignments *assignments, uint64_t instance)
{
    for (size_t i = 0; i < assignments->count; i++)
        if (assignments->posts[i].instance == instance && assignments->posts[i].stream)
            return &assignments->posts[i];
    return NULL;
}

void assignments_open(struct assignments *assignments, uint64_t instance)
{
    if (assignments_find(assignments, instance))
        return;
    assignments->posts = grow(assignments->posts, assignments->count, &assignments->capacity,
                              sizeof *assignments->posts);
    assignments->posts[assignments->count++] =
        (struct post){instance, stream_create(assignments->term, ASSIGNMENTS_KEPT), false};
}

void assignments_close(struct assignments *assignments, uint64_t instance)
{
    struct post *post = assignments_find(assignments, instance);
    if (!post)
        return;
    stream_destroy(post->stream);
    post->stream = NULL;
    post->changed = true;
}

bool assignments_changed(struct assignments *assignments, uint64_t *instance)
{
    for (size_t i = 0; i < assignments->count; i++) {
        struct post *post = &assignments->posts[i];
        if (!post->changed)
            continue;
        *instance = post->instance;
        post->changed = false;
        if (!post->stream)
            *post = assignments->posts[--assignments->count];
        return true;
    }
    return false;
}

const struct stream *assignments_stream(const struct assignments *assignments, uint64_t instance)
{
    const struct post *post = assignments_find(assignments, instance);
    return post ? post->stream : NULL;
}

void assignments_taken(struct assignments *assignments, uint64_t instance, uint64_t revision)
{
    struct post *post = assignments_find(assignments, instance);
    if (post && revision > ASSIGNMENTS_TAKEN_KEPT)
        stream_forget(post->stream, revision - ASSIGNMENTS_TAKEN_KEPT);
}

static void assignments_append(struct assignments *assignments, uint64_t instance,
                               const Gimbal__WorkerRecord *record)
{
    struct post *post = assignments_find(assignments, instance);
    if (!post)
        return;
    size_t size;
    void *bytes = message_pack(&record->base, &size);
    stream_append(post->stream, bytes, size);
    post->changed = true;
    free(bytes);
}

/* What the state is if nobody has it in memory: the job's own checkpoint, that of another which it
 * goes on from, or that one's weights. */
static void assignments_begin(const struct assignments_epoch *epoch, Gimbal__Assignment *assignment)
{
    const struct job *job = epoch->job;
    assignment->origin_step = job->origin_step;
    assignment->origin_samples = job->origin_samples;
    if (job->origin_weights)
        assignment->weights = job->origin;
    assignment->start_step = job_saved_step(job);
    if (epoch->checkpoint) {
        assignment->checkpoint = (char *)epoch->checkpoint;
        assignment->checkpoint_epoch = job->checkpoint_epoch;
    } else if (!job->origin_weights) {
        assignment->checkpoint =
            job->origin; /* its epoch is one of that job: 0 is older than any */
    }
}

void assignments_assign(struct assignments *assignments, const struct assignments_epoch *epoch)
{
    const struct job *job = epoch->job;
    size_t count = job->rank_count;
    Gimbal__RankAddress *ranks = xcalloc(count, sizeof *ranks);
    Gimbal__RankAddress **pointers = xcalloc(count, sizeof(Gimbal__RankAddress *));
    for (size_t i = 0; i < count; i++) {
        gimbal__rank_address__init(&ranks[i]);
        ranks[i].rank = (uint32_t)i;
        ranks[i].node = job->ranks[i].device.worker;
        ranks[i].host_address = (char *)epoch->addresses[i];
        pointers[i] = &ranks[i];
    }
    Gimbal__Plan plan = GIMBAL__PLAN__INIT;
    plan.id = (char *)epoch->plan_id;
    plan.json = (char *)epoch->plan_json;
    Gimbal__Assignment assignment = GIMBAL__ASSIGNMENT__INIT;
    assignment.job = (char *)job->id;
    assignment.epoch = job->epoch;
    assignment.rank_count = (uint32_t)count;
    assignment.givers = (uint32_t)(count - epoch->trainers);
    assignment.job_yaml = job->text;
    assignment.keeps = job->replans;
    assignment.plan = &plan;
    assignment.ranks = pointers;
    assignment.n_ranks = count;
    assignment.orphan_ms = epoch->orphan_ms;
    assignment.measures_links = epoch->measures_links;
    assignment.copy_every = epoch->copy_every;
    assignment.no_copies = epoch->no_copies;
    if (epoch->checkpoint_root)
        assignment.checkpoint_folder = (char *)epoch->checkpoint_root;
    assignments_begin(epoch, &assignment);
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_ASSIGNMENT;
    record.assignment = &assignment;
    for (size_t i = 0; i < count; i++) {
        assignment.rank = (uint32_t)i;
        assignment.device_index = job->ranks[i].device.index;
        assignment.device = (char *)epoch->devices[i];
        assignment.program_hash = i < epoch->trainers ? epoch->hashes[i] : 0;
        assignment.compute_s = epoch->compute_s && i < epoch->trainers ? epoch->compute_s[i] : 0;
        assignments_append(assignments, job->ranks[i].device.instance, &record);
    }
    free(pointers);
    free(ranks);
}

/* Whether an earlier rank is on the same worker. */
static bool rank_is_told(const struct job *job, size_t rank)
{
    size_t before = 0;
    while (job->ranks[before].device.instance != job->ranks[rank].device.instance)
        before++;
    return before < rank;
}

/* Append to each worker of the job's ranks, once. */
static void assignments_append_to_all(struct assignments *assignments, const struct job *job,
                                      const Gimbal__WorkerRecord *record)
{
    for (size_t i = 0; i < job->rank_count; i++)
        if (!rank_is_told(job, i))
            assignments_append(assignments, job->ranks[i].device.instance, record);
}

static void assignments_resume(struct assignments *assignments, const struct job *job)
{
    Gimbal__ResumeJob resume = GIMBAL__RESUME_JOB__INIT;
    resume.job = (char *)job->id;
    resume.epoch = job->epoch;
    resume.number = job->resumes;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_RESUME;
    record.resume = &resume;
    assignments_append_to_all(assignments, job, &record);
}

void assignments_go(struct assignments *assignments, const struct job *job)
{
    Gimbal__Go go = GIMBAL__GO__INIT;
    go.job = (char *)job->id;
    go.epoch = job->epoch;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_GO;
    record.go = &go;
    assignments_append_to_all(assignments, job, &record);
    if (job->resumes > 0)
        assignments_resume(assignments, job);
}

void assignments_pause(struct assignments *assignments, const struct job *job)
{
    Gimbal__PauseJob pause = GIMBAL__PAUSE_JOB__INIT;
    pause.job = (char *)job->id;
    pause.epoch = job->epoch;
    pause.number = job->pauses;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_PAUSE;
    record.pause = &pause;
    assignments_append_to_all(assignments, job, &record);
}

/* List the instance's ranks that are not known to have exited. */
static size_t assignments_list_ranks(const struct job *job, uint64_t instance, uint32_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].device.instance == instance && job->ranks[i].state < JOB_RANK_EXITED)
            out[count++] = (uint32_t)i;
    return count;
}

/* Send each worker the list of its own ranks. `list` and `count` are the fields of the record for
 * it. */
static void assignments_append_lists(struct assignments *assignments, const struct job *job,
                                     const Gimbal__WorkerRecord *record, uint32_t **list,
                                     size_t *count)
{
    *list = xcalloc(job->rank_count, sizeof **list);
    for (size_t i = 0; i < job->rank_count; i++) {
        uint64_t instance = job->ranks[i].device.instance;
        if (rank_is_told(job, i))
            continue;
        *count = assignments_list_ranks(job, instance, *list);
        assignments_append(assignments, instance, record);
    }
    free(*list);
}

void assignments_cancel(struct assignments *assignments, const struct job *job)
{
    Gimbal__CancelJob cancel = GIMBAL__CANCEL_JOB__INIT;
    cancel.job = (char *)job->id;
    cancel.epoch = job->epoch;
    cancel.reason = (char *)job->words;
    cancel.save = job->saves;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_CANCEL;
    record.cancel = &cancel;
    assignments_append_lists(assignments, job, &record, &cancel.ranks, &cancel.n_ranks);
}

void assignments_quiesce(struct assignments *assignments, const struct job *job)
{
    Gimbal__Quiesce quiesce = GIMBAL__QUIESCE__INIT;
    quiesce.job = (char *)job->id;
    quiesce.epoch = job->epoch;
    quiesce.reason = (char *)job->words;
    quiesce.save = job->saves;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_QUIESCE;
    record.quiesce = &quiesce;
    assignments_append_lists(assignments, job, &record, &quiesce.ranks, &quiesce.n_ranks);
}

void assignments_end(struct assignments *assignments, const struct job *job, size_t rank,
                     const char *reason)
{
    Gimbal__EndRank end = GIMBAL__END_RANK__INIT;
    end.job = (char *)job->id;
    end.epoch = job->epoch;
    end.rank = (uint32_t)rank;
    end.reason = (char *)reason;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_END;
    record.end = &end;
    assignments_append(assignments, job->ranks[rank].device.instance, &record);
}

void assignments_drill(struct assignments *assignments, const struct job *job, size_t rank,
                       const Gimbal__DrillRequest *request)
{
    Gimbal__Drill drill = GIMBAL__DRILL__INIT;
    drill.job = (char *)job->id;
    drill.epoch = job->epoch;
    drill.rank = (uint32_t)rank;
    drill.fault = request->fault;
    drill.for_ms = request->for_ms;
    drill.delay_ms = request->delay_ms;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_DRILL;
    record.drill = &drill;
    assignments_append(assignments, job->ranks[rank].device.instance, &record);
}

void assignments_disown(struct assignments *assignments, uint64_t instance, const char *job,
                        uint64_t epoch, bool lasts, const char *reason)
{
    Gimbal__CancelJob cancel = GIMBAL__CANCEL_JOB__INIT;
    Gimbal__Quiesce quiesce = GIMBAL__QUIESCE__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    cancel.job = quiesce.job = (char *)job;
    cancel.epoch = quiesce.epoch = epoch;
    cancel.reason = quiesce.reason = (char *)reason;
    record.record_case =
        lasts ? GIMBAL__WORKER_RECORD__RECORD_QUIESCE : GIMBAL__WORKER_RECORD__RECORD_CANCEL;
    if (lasts)
        record.quiesce = &quiesce;
    else
        record.cancel = &cancel;
    assignments_append(assignments, instance, &record);
}

void assignments_drop(struct assignments *assignments, const struct job *job)
{
    Gimbal__DropJob drop = GIMBAL__DROP_JOB__INIT;
    drop.job = (char *)job->id;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_DROP;
    record.drop = &drop;
    for (size_t i = 0; i < assignments->count; i++)
        assignments_append(assignments, assignments->posts[i].instance, &record);
}
