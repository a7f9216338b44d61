/* supervised.c - records that are real messages, and time that only moves when asked to. */
#include "tests/worker/supervisor/supervised.h"

#include "common/base/memory.h"
#include "common/message/message.h"

#include <check.h>
#include <stdlib.h>

void supervised_open(struct supervised *supervised, uint64_t seed)
{
    *supervised = (struct supervised){.now_ms = 1000000};
    supervised->supervisor = supervisor_create("node-a", DEVICES, seed);
    supervisor_start(supervised->supervisor, &supervised->actions);
}

void supervised_open_up(struct supervised *supervised)
{
    supervised_open(supervised, 1);
    answer_hello(supervised, 1);
    answer_report(supervised, RPC_OK);
    done(supervised);
}

void supervised_close(struct supervised *supervised)
{
    supervisor_destroy(supervised->supervisor);
    supervisor_actions_finish(&supervised->actions);
}

size_t wanted(const struct supervised *supervised, enum supervisor_action_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < supervised->actions.count; i++)
        count += supervised->actions.items[i].kind == kind;
    return count;
}

const struct supervisor_action *want(const struct supervised *supervised,
                                     enum supervisor_action_kind kind)
{
    for (size_t i = supervised->actions.count; i-- > 0;)
        if (supervised->actions.items[i].kind == kind)
            return &supervised->actions.items[i];
    ck_abort_msg("action %d is not wanted", (int)kind);
}

size_t told(const struct supervised *supervised, enum rank_message message)
{
    size_t count = 0;
    for (size_t i = 0; i < supervised->actions.count; i++)
        count += supervised->actions.items[i].kind == SUPERVISOR_DELIVER &&
                 supervised->actions.items[i].message == message;
    return count;
}

uint64_t want_told(const struct supervised *supervised, enum rank_message message)
{
    for (size_t i = supervised->actions.count; i-- > 0;)
        if (supervised->actions.items[i].kind == SUPERVISOR_DELIVER &&
            supervised->actions.items[i].message == message)
            return supervised->actions.items[i].rank;
    ck_abort_msg("message %d is not wanted", (int)message);
}

void done(struct supervised *supervised)
{
    supervisor_actions_clear(&supervised->actions);
}

/* To the next thing to do, but not beyond until_ms. */
static void step(struct supervised *supervised, uint64_t until_ms)
{
    uint64_t next_ms = supervisor_next_ms(supervised->supervisor);
    if (next_ms > supervised->now_ms)
        supervised->now_ms = next_ms < until_ms ? next_ms : until_ms;
    supervisor_expire(supervised->supervisor, supervised->now_ms, &supervised->actions);
}

void advance(struct supervised *supervised, uint64_t milliseconds)
{
    uint64_t until_ms = supervised->now_ms + milliseconds;
    while (supervised->now_ms < until_ms)
        step(supervised, until_ms);
}

uint64_t advance_to(struct supervised *supervised, enum supervisor_action_kind kind)
{
    uint64_t from_ms = supervised->now_ms;
    while (wanted(supervised, kind) == 0) {
        ck_assert_msg(supervised->now_ms - from_ms < 100000, "action %d never comes", (int)kind);
        step(supervised, from_ms + 100000);
    }
    return supervised->now_ms - from_ms;
}

void answer_hello(struct supervised *supervised, uint64_t term)
{
    want(supervised, SUPERVISOR_HELLO);
    supervisor_hello_answered(supervised->supervisor, RPC_OK, "", term, supervised->now_ms,
                              &supervised->actions);
}

void answer_report(struct supervised *supervised, enum rpc_status status)
{
    want(supervised, SUPERVISOR_REPORT);
    supervisor_report_answered(supervised->supervisor, status, status == RPC_OK ? "" : "refused",
                               HEARTBEAT_MS, supervised->now_ms, &supervised->actions);
}

void answer_told(struct supervised *supervised, enum rank_message message, uint64_t rank,
                 enum rpc_status status)
{
    supervisor_rank_answered(supervised->supervisor, rank, message, status, "trouble",
                             supervised->now_ms, &supervised->actions);
}

void lose_heartbeat(struct supervised *supervised)
{
    advance_to(supervised, SUPERVISOR_HEARTBEAT);
    supervisor_heartbeat_answered(supervised->supervisor, RPC_UNAVAILABLE, "gone", 0,
                                  supervised->now_ms, &supervised->actions);
}

/* The supervisor frees what it takes, so it gets what came off a wire. */
static void feed(struct supervised *supervised, const Gimbal__WorkerRecord *record)
{
    ProtobufCMessage *copy;
    size_t size;
    void *bytes = message_pack(&record->base, &size);
    ck_assert_int_eq(
        message_unpack(record->base.descriptor, bytes, size, message_quota(size), &copy, NULL), 0);
    free(bytes);
    supervisor_record(supervised->supervisor, ++supervised->revision, (Gimbal__WorkerRecord *)copy,
                      supervised->now_ms, &supervised->actions);
}

static void assign_as(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank,
                      uint32_t device, bool keeps)
{
    Gimbal__Assignment assignment = GIMBAL__ASSIGNMENT__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    assignment.job = (char *)job;
    assignment.epoch = epoch;
    assignment.rank = rank;
    assignment.device_index = device;
    assignment.keeps = keeps;
    assignment.device = supervised->afar ? "cuda:GPU-0" : "";
    assignment.orphan_ms = supervised->orphan_ms;
    assignment.checkpoint_folder = supervised->saves ? "/checkpoints/j" : "";
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_ASSIGNMENT;
    record.assignment = &assignment;
    feed(supervised, &record);
}

void assign(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank,
            uint32_t device)
{
    assign_as(supervised, job, epoch, rank, device, false);
}

void assign_staying(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank,
                    uint32_t device)
{
    assign_as(supervised, job, epoch, rank, device, true);
}

static void leave(struct supervised *supervised, const char *job, uint64_t epoch, bool save)
{
    Gimbal__Quiesce message = GIMBAL__QUIESCE__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    message.job = (char *)job;
    message.epoch = epoch;
    message.reason = (char *)"a rank was lost";
    message.save = save;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_QUIESCE;
    record.quiesce = &message;
    feed(supervised, &record);
}

void quiesce(struct supervised *supervised, const char *job, uint64_t epoch)
{
    leave(supervised, job, epoch, false);
}

void quiesce_saving(struct supervised *supervised, const char *job, uint64_t epoch)
{
    leave(supervised, job, epoch, true);
}

void drop(struct supervised *supervised, const char *job)
{
    Gimbal__DropJob message = GIMBAL__DROP_JOB__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    message.job = (char *)job;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_DROP;
    record.drop = &message;
    feed(supervised, &record);
}

void go(struct supervised *supervised, const char *job, uint64_t epoch)
{
    Gimbal__Go message = GIMBAL__GO__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    message.job = (char *)job;
    message.epoch = epoch;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_GO;
    record.go = &message;
    feed(supervised, &record);
}

void pause_job(struct supervised *supervised, const char *job, uint64_t epoch, uint64_t number)
{
    Gimbal__PauseJob message = GIMBAL__PAUSE_JOB__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    message.job = (char *)job;
    message.epoch = epoch;
    message.number = number;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_PAUSE;
    record.pause = &message;
    feed(supervised, &record);
}

void resume_job(struct supervised *supervised, const char *job, uint64_t epoch, uint64_t number)
{
    Gimbal__ResumeJob message = GIMBAL__RESUME_JOB__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    message.job = (char *)job;
    message.epoch = epoch;
    message.number = number;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_RESUME;
    record.resume = &message;
    feed(supervised, &record);
}

/* The ends of these ranks are waited for. */
static void end(struct supervised *supervised, const char *job, uint64_t epoch, bool save,
                uint32_t *ranks, size_t count)
{
    Gimbal__CancelJob message = GIMBAL__CANCEL_JOB__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    message.job = (char *)job;
    message.epoch = epoch;
    message.reason = (char *)"asked for";
    message.save = save;
    message.ranks = ranks;
    message.n_ranks = count;
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_CANCEL;
    record.cancel = &message;
    feed(supervised, &record);
}

void cancel(struct supervised *supervised, const char *job, uint64_t epoch)
{
    end(supervised, job, epoch, false, NULL, 0);
}

void cancel_rank(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank)
{
    end(supervised, job, epoch, false, &rank, 1);
}

void cancel_saving(struct supervised *supervised, const char *job, uint64_t epoch)
{
    end(supervised, job, epoch, true, NULL, 0);
}

void end_stalled(struct supervised *supervised, const char *job, uint64_t epoch, uint32_t rank)
{
    Gimbal__EndRank message = GIMBAL__END_RANK__INIT;
    Gimbal__WorkerRecord record = GIMBAL__WORKER_RECORD__INIT;
    message.job = (char *)job;
    message.epoch = epoch;
    message.rank = rank;
    message.reason = (char *)"holds up 3 ranks";
    record.record_case = GIMBAL__WORKER_RECORD__RECORD_END;
    record.end = &message;
    feed(supervised, &record);
}

uint64_t start_rank(struct supervised *supervised, const char *job, uint64_t epoch)
{
    assign(supervised, job, epoch, 0, 0);
    uint64_t rank = want(supervised, SUPERVISOR_START)->rank;
    Gimbal__Assignment *assignment = supervisor_take_assignment(supervised->supervisor, rank);
    ck_assert_str_eq(assignment->job, job);
    message_free(&assignment->base);
    done(supervised);
    return rank;
}

void executor_stopped(struct supervised *supervised, uint64_t rank,
                      Gimbal__StoppedRequest__Cause cause, const char *reason, uint64_t step,
                      bool keeps)
{
    Gimbal__StoppedRequest stopped = GIMBAL__STOPPED_REQUEST__INIT;
    stopped.cause = cause;
    stopped.reason = (char *)reason;
    stopped.step = step;
    stopped.keeps = keeps;
    supervisor_executor_stopped(supervised->supervisor, rank, &stopped, supervised->now_ms,
                                &supervised->actions);
}

void rank_gone(struct supervised *supervised, uint64_t rank, const char *how)
{
    supervisor_executor_gone(supervised->supervisor, rank, &(struct executor_end){how, ""},
                             supervised->now_ms, &supervised->actions);
}

void executor_staged(struct supervised *supervised, uint64_t rank, uint64_t step)
{
    Gimbal__StagedRequest *staged = xcalloc(1, sizeof *staged);
    gimbal__staged_request__init(staged);
    staged->step = step;
    supervisor_executor_staged(supervised->supervisor, rank, staged, &supervised->actions);
}

void executor_ready(struct supervised *supervised, uint64_t rank)
{
    Gimbal__ReadyRequest *ready = xcalloc(1, sizeof *ready);
    gimbal__ready_request__init(ready);
    ready->program_hash = 0xfeed;
    supervisor_executor_ready(supervised->supervisor, rank, ready, &supervised->actions);
}

void come_back(struct supervised *supervised, uint64_t term)
{
    advance_to(supervised, SUPERVISOR_HELLO);
    answer_hello(supervised, term);
    answer_report(supervised, RPC_OK);
}

const struct rank *rank_of(const struct supervised *supervised, uint64_t id)
{
    const struct rank *rank = supervisor_rank(supervised->supervisor, id);
    ck_assert_ptr_nonnull(rank);
    return rank;
}
