/* turn.c - draws the consequences of what has happened.
 *
 * Events of membership go to jobs, actions of jobs are carried out, and what that brings about goes
 * the same way, until nothing is left; only then are free devices granted. So whoever is answered
 * after a turn sees everything that followed from the call.
 *
 * This changes only what this process knows and what is put into the store. Answers are collected
 * and leave once the store has been committed; see service_poll(). */
#include "coordinator/turn/turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/memory.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/checkpoints.h"
#include "coordinator/turn/conditions.h"
#include "coordinator/turn/curves.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/plans.h"
#include "coordinator/turn/retention.h"

int turn_open(const struct state_options *options, struct rpc_server *server, struct state **out,
              struct error *err)
{
    struct state *state = *out = xcalloc(1, sizeof *state);
    state->options = *options;
    state->started_ms = state_now_ms(state);
    state->server = server;
    state->membership = membership_create(&options->membership);
    state->assignments = assignments_create(options->term);
    state->rendezvous = rendezvous_create();
    state->telemetry = telemetry_create(&TELEMETRY_CONFIG_DEFAULT);
    state->events = stream_create(options->term, EVENTS_KEPT);
    state->history = xcalloc(1, sizeof *state->history);
    state->dossiers = xcalloc(1, sizeof *state->dossiers);
    state->conditions = xcalloc(1, sizeof *state->conditions);
    state->curves = xcalloc(1, sizeof *state->curves);
    state->retention = xcalloc(1, sizeof *state->retention);
    state->asking = xcalloc(1, sizeof *state->asking);
    state->turn = xcalloc(1, sizeof *state->turn);
    return planning_queue_create(&state->plans, err);
}

void turn_close(struct state *state)
{
    if (!state)
        return;
    planning_queue_destroy(state->plans);
    asking_finish(state->asking);
    conditions_finish(state->conditions);
    dossiers_finish(state->dossiers);
    history_finish(state->history);
    for (size_t i = 0; i < state->turn->released_count; i++)
        free(state->turn->released[i]);
    free(state->turn->released);
    free(state->turn);
    free(state->asking);
    free(state->curves);
    free(state->retention);
    free(state->conditions);
    free(state->dossiers);
    free(state->history);
    membership_destroy(state->membership);
    jobs_destroy(state->jobs);
    assignments_destroy(state->assignments);
    rendezvous_destroy(state->rendezvous);
    telemetry_destroy(state->telemetry);
    stream_destroy(state->events);
    membership_events_finish(&state->happened);
    jobs_actions_finish(&state->actions);
    free(state);
}

const char *parked_assignments(char *out, uint64_t instance)
{
    snprintf(out, PARKED_SIZE, "assignments %016" PRIx64, instance);
    return out;
}

const char *parked_rendezvous(char *out, const char *job, uint64_t epoch)
{
    snprintf(out, PARKED_SIZE, "rendezvous %.*s %" PRIu64, JOB_ID_SIZE, job, epoch);
    return out;
}

static void action_hold(struct state *state, const struct job *job)
{
    struct error err;
    struct device_ref *refs = xcalloc(job->rank_count, sizeof *refs);
    size_t count = job_devices(job, refs);
    if (membership_hold(state->membership, job->id, refs, count, &err) < 0)
        log_line(LOG_ERROR, "%s: hold its devices: %s", job->id, err.text);
    free(refs);
}

/* Find each rank's address and the id of its device, as its worker reported them; "" if unknown. */
static void ranks_find_addresses(const struct state *state, const struct job *job,
                                 const char **addresses, const char **devices)
{
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct device_ref *ref = &job->ranks[i].device;
        const struct worker *worker = membership_find(state->membership, ref->worker);
        const struct hardware_report *report = worker ? worker->report : NULL;
        bool there = report && ref->index < report->device_count;
        addresses[i] = report && report->address ? report->address : "";
        devices[i] = there && report->devices[ref->index].id ? report->devices[ref->index].id : "";
    }
}

static void action_assign(struct state *state, const struct job *job)
{
    const struct dossier *dossier = dossier_find(state, job->id);
    const char **addresses = xcalloc(job->rank_count, sizeof(char *));
    const char **devices = xcalloc(job->rank_count, sizeof(char *));
    ranks_find_addresses(state, job, addresses, devices);
    char *root = checkpoints_root(state, job);
    char *newest = checkpoints_newest(state, job);
    struct assignments_epoch epoch = {
        .job = job,
        .trainers = job_trainers(job),
        .orphan_ms = dossier->config ? (uint64_t)(dossier->config->elastic.orphan * 1000) : 0,
        .measures_links = conditions_wants_links(state, job),
        .copy_every = dossier->planning.safety.copy_every,
        .no_copies = dossier->planning.safety.no_room,
        .checkpoint_root = root,
        .checkpoint = newest,
        .plan_id = dossier->planning.plan->id,
        .plan_json = dossier->planning.json,
        .hashes = dossier->planning.hashes,
        .compute_s = dossier->planning.compute_s,
        .addresses = addresses,
        .devices = devices,
    };
    assignments_assign(state->assignments, &epoch);
    free(newest);
    free(root);
    free(devices);
    free(addresses);
}

/* No rank of the epoch has anything left to ask; those that still wait are woken after the turn. */
static void action_release(struct state *state, const struct job *job)
{
    char parked[PARKED_SIZE];
    struct error err;
    if (membership_hold(state->membership, job->id, NULL, 0, &err) < 0)
        log_line(LOG_ERROR, "%s: release its devices: %s", job->id, err.text);
    rendezvous_forget(state->rendezvous, job->id);
    store_delete_values(state->options.store, job->id, "");
    state->turn->released = grow(state->turn->released, state->turn->released_count,
                                 &state->turn->released_capacity, sizeof *state->turn->released);
    state->turn->released[state->turn->released_count++] =
        xstrdup(parked_rendezvous(parked, job->id, job->epoch));
}

static void action_follow(struct state *state, const struct job *job)
{
    state->growth_due |= job->state == JOB_RUNNING || job_ended(job);
    struct dossier *dossier = dossier_find(state, job->id);
    replan_follow(&dossier->replan, job, &dossier->planning, state_now_ms(state));
}

/* An action that the job's later state has overtaken is dropped. */
static void action_carry_out(struct state *state, const struct job_action *action)
{
    const struct job *job = jobs_find(state->jobs, action->job);
    if (!job)
        return;
    bool current = action->epoch == job->epoch;
    switch (action->kind) {
    case JOB_ACTION_STORE:
        store_put_job(state->options.store, job);
        if (job_ended(job)) {
            curves_end(state, job);
            retention_note_end(state);
        }
        action_follow(state, job);
        history_tell_job(state, job);
        break;
    case JOB_ACTION_HOLD:
        if (job->holding)
            action_hold(state, job);
        break;
    case JOB_ACTION_PLAN:
        if (current && job->state == JOB_PLANNING)
            epoch_plan(state, job);
        break;
    case JOB_ACTION_ASSIGN:
        if (current && job->state == JOB_STARTING)
            action_assign(state, job);
        break;
    case JOB_ACTION_GO:
        if (current && (job->state == JOB_RUNNING || job->state == JOB_PAUSING))
            assignments_go(state->assignments, job);
        break;
    case JOB_ACTION_PAUSE:
        if (current && job->state == JOB_PAUSING)
            assignments_pause(state->assignments, job);
        break;
    case JOB_ACTION_STOP:
        if (current)
            assignments_cancel(state->assignments, job);
        break;
    case JOB_ACTION_QUIESCE:
        if (current && job->state == JOB_REPLANNING)
            assignments_quiesce(state->assignments, job);
        break;
    case JOB_ACTION_DROP:
        assignments_drop(state->assignments, job);
        break;
    case JOB_ACTION_RELEASE:
        if (!job->holding)
            action_release(state, job);
        break;
    }
}

/* Returns true if there were any. */
static bool turn_carry_out(struct state *state)
{
    struct job_actions actions = state->actions;
    state->actions = (struct job_actions){0};
    for (size_t i = 0; i < actions.count; i++)
        action_carry_out(state, &actions.items[i]);
    bool any = actions.count > 0;
    jobs_actions_finish(&actions);
    return any;
}

/* Store the worker as it is. Suspicion is not stored, since a restarted coordinator suspects every
 * worker. */
static void turn_put_worker(struct state *state, const struct membership_event *happened)
{
    if (happened->kind == MEMBERSHIP_SUSPECTED || happened->kind == MEMBERSHIP_RECOVERED)
        return;
    const struct worker *worker = membership_find(state->membership, happened->worker);
    if (worker)
        store_put_worker(state->options.store, worker);
    else
        store_delete_worker(state->options.store, happened->worker);
}

static void turn_act_on_membership(struct state *state, const struct membership_event *happened)
{
    struct job_event event = {.words = happened->reason};
    event.worker.name = happened->worker;
    event.worker.instance = happened->instance;
    switch (happened->kind) {
    case MEMBERSHIP_LOST:
        event.kind = JOB_EVENT_WORKER_LOST;
        assignments_close(state->assignments, happened->instance);
        conditions_forget_slow(state, happened->instance);
        conditions_forget_network(state, happened->worker);
        break;
    case MEMBERSHIP_DRAINING:
        event.kind = JOB_EVENT_WORKER_DRAINS;
        break;
    case MEMBERSHIP_JOINED:
        assignments_open(state->assignments, happened->instance);
        state->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    case MEMBERSHIP_CHANGED:
        ahead_forget_spares(state);
        state->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    case MEMBERSHIP_RECOVERED:
    case MEMBERSHIP_UNDRAINED: /* its devices can be had again */
        state->growth_due = true;
        event.kind = JOB_EVENT_WORKER_JOINED;
        break;
    default:
        return;
    }
    state_apply_own(state, &event);
}

/* Returns true if anything had happened. */
static bool turn_act_on_happened(struct state *state)
{
    struct membership_events happened = state->happened;
    state->happened = (struct membership_events){0};
    for (size_t i = 0; i < happened.count; i++) {
        turn_put_worker(state, &happened.items[i]);
        history_tell_membership(state, &happened.items[i]);
        turn_act_on_membership(state, &happened.items[i]);
    }
    bool any = happened.count > 0;
    membership_events_finish(&happened);
    return any;
}

static void turn_schedule(struct state *state)
{
    struct device_view *devices;
    size_t count = conditions_views(state, &devices);
    jobs_schedule(state->jobs, devices, count, state_now_ms(state), &state->actions);
    free(devices);
}

static void turn_wake(struct state *state)
{
    char parked[PARKED_SIZE];
    uint64_t instance;
    while (assignments_changed(state->assignments, &instance))
        rpc_server_wake(state->server, parked_assignments(parked, instance));
    while (state->turn->released_count > 0) {
        char *name = state->turn->released[--state->turn->released_count];
        rpc_server_wake(state->server, name);
        free(name);
    }
    if (stream_revision(state->events) != state->turn->events_woken) {
        state->turn->events_woken = stream_revision(state->events);
        rpc_server_wake(state->server, EVENTS_STREAM);
    }
}

void turn_run(struct state *state)
{
    bool any = true;
    while (any) {
        any = false;
        while (turn_act_on_happened(state) || turn_carry_out(state))
            any = true;
        if (any)
            turn_schedule(state);
    }
    if (state->growth_due) {
        state->growth_due = false;
        ahead_consider_growth(state);
        ahead_consider_spares(state);
    }
    turn_wake(state);
}

int turn_commit(struct state *state, struct error *err)
{
    int rc = store_commit(state->options.store, err);
    if (rc < 0)
        return error_prefix(err, rc, "the store has failed, and nothing more is accepted");
    return 0;
}
