/* rank.c - the executor of a device: one rank of its job, in one epoch after another.
 *
 * What does not change between epochs, the model and the data, is opened once. When an epoch breaks
 * or is to be left, the state of its last step stays here, and the ranks of the next assignment
 * gather it from each other. A fault of this process ends it; its state stays in the file that its
 * worker will give to the next executor of the device. */
#include "worker/executor/crew.h"
#include "worker/executor/modes.h"

#include "common/base/memory.h"
#include "worker/kernels/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The address at which other ranks reach this one; NULL if all of them are on this host. */
static const char *own_address(const Gimbal__Assignment *assignment)
{
    const char *own = NULL;
    bool all_here = true;
    for (size_t i = 0; i < assignment->n_ranks; i++) {
        const Gimbal__RankAddress *rank = assignment->ranks[i];
        if (rank->rank == assignment->rank && rank->host_address[0])
            own = rank->host_address;
    }
    for (size_t i = 0; own && i < assignment->n_ranks; i++)
        all_here = all_here && strcmp(assignment->ranks[i]->host_address, own) == 0;
    return all_here ? NULL : own;
}

/* Where this rank's checkpoints come from and go to. */
static void set_checkpoints(struct work *work, const Gimbal__Assignment *assignment)
{
    uint64_t batch = (uint64_t)work->job->train.global_batch;
    work->trainer.start = NULL;
    work->trainer.weights = assignment->weights[0] ? assignment->weights : NULL;
    work->trainer.shift = assignment->origin_samples - assignment->origin_step * batch;
    if (assignment->checkpoint[0]) {
        work->trainer.start = assignment->checkpoint;
        work->trainer.start_age =
            (struct move_age){assignment->checkpoint_epoch, assignment->start_step};
        session_stepped(work->session, assignment->start_step);
    }
    if (assignment->checkpoint_folder[0]) {
        session_saves(work->session, job_saving_patience_s(work->job, false));
        work->saving = (struct saver_config){
            .root = assignment->checkpoint_folder,
            .origin = {.job = assignment->job,
                       .spec = assignment->job_yaml,
                       .epoch = assignment->epoch},
            .rendezvous = &work->rendezvous,
            .context = work->session,
            .staged = session_stage,
            .unsaved = session_unsaved,
            .complain = session_complain,
            .abandon = session_give_up,
        };
    }
}

static void name_nodes(struct work *work, const Gimbal__Assignment *assignment)
{
    size_t ranks = (size_t)plan_ranks(work->plan);
    free(work->nodes);
    work->nodes = xcalloc(ranks, sizeof *work->nodes);
    for (size_t i = 0; i < ranks; i++)
        work->nodes[i] = i < assignment->n_ranks ? assignment->ranks[i]->node : "";
}

static int rank_open_job(struct work *work, const Gimbal__Assignment *assignment, struct error *err)
{
    int rc = job_config_parse(assignment->job_yaml, strlen(assignment->job_yaml), "job", &work->job,
                              err);
    if (rc == 0)
        rc = work_open(work, err);
    if (rc == 0)
        session_reads(work->session, work->data, work->pretrained, work->tokenizer);
    if (rc == 0 && work->job->eval.sample == 0) { /* nothing will be written with it */
        tokenizer_close(work->tokenizer);
        work->tokenizer = NULL;
    }
    return rc;
}

/* Open what is kept, including what an earlier executor has left. */
static int rank_open_kept(struct work *work, int fd, struct error *err)
{
    const struct optimizer optimizer = trainer_optimizer(work->job);
    const struct update_rule rule = {&device_cpu, &optimizer, work->graph};
    return kept_open(work->trainer.kept, fd, &rule, err);
}

static int rank_open_epoch(struct work *work, const Gimbal__Assignment *assignment,
                           struct error *err)
{
    plan_destroy(work->plan);
    work->plan = NULL;
    work->assignment = assignment;
    work->trainer.hash = assignment->program_hash;
    work->trainer.compute_s = assignment->compute_s;
    work->interface = own_address(assignment);
    set_checkpoints(work, assignment);
    int rc = plan_decode(assignment->plan ? assignment->plan->json : "", &work->plan, err);
    if (rc == 0)
        rc = plan_check(work->plan, work->graph, err);
    if (rc == 0)
        name_nodes(work, assignment);
    work->trainer.givers = (int)assignment->givers;
    if (rc == 0 && assignment->rank >= (uint32_t)(plan_ranks(work->plan) + work->trainer.givers))
        rc = error_set(err, -EINVAL, "the assignment is for rank %u of a plan with %d",
                       assignment->rank, plan_ranks(work->plan));
    if (rc == 0 && work->trainer.givers > 0 && !work->trainer.kept)
        rc = error_set(err, -EINVAL, "a rank is to give what no executor keeps");
    if (rc == 0 && plan_ranks(work->plan) > 1 && !work->trainer.collectives)
        rc = error_set(err, -ENOSYS,
                       "this gimbal-executor was built without Gloo and cannot join other ranks; "
                       "install libgloo-dev and build again");
    return rc;
}

/* Without a descriptor the rank runs without a trail. */
static int open_trail(const struct executor_options *options, struct work *work, struct error *err)
{
    return options->trail >= 0 ? trail_open(options->trail, &work->trainer.trail, err) : 0;
}

/* Run one assignment after another, for as long as the process stays. */
static int rank_run_epochs(struct work *work, struct member *member, struct error *err)
{
    const Gimbal__Assignment *assignment = work->assignment;
    for (;;) {
        member->rank = (int)assignment->rank;
        int rc = rank_open_epoch(work, assignment, err);
        if (rc < 0)
            return crew_refuse(work, member->rank, rc, err);
        work->rc = 0;
        rc = crew_run(work, member, 1, err);
        if (!crew_stays(work, rc) ||
            (rc = session_assignment(work->session, &assignment, err)) < 0) {
            work_close(work);
            return rc;
        }
    }
}

int executor_rank(const struct executor_options *options, struct error *err)
{
    struct work work = {.session = session_create(options->channel),
                        .trainer.collectives = collectives_find("gloo")};
    static cpu_set_t sets[CPUSETS_MAX];
    struct member member = {.work = &work};
    struct kept kept = {0};
    session_listen(work.session);
    int rc = session_assignment(work.session, &work.assignment, err);
    if (rc < 0) {
        session_destroy(work.session);
        return rc;
    }
    const char *device = work.assignment->device;
    rc = device_open(device[0] ? device : "cpu", &work.trainer.device, err);
    if (rc < 0)
        return crew_refuse(&work, (int)work.assignment->rank, rc, err);
    work.trainer.kept = work.assignment->keeps ? &kept : NULL;
    work.rendezvous = session_rendezvous(work.session);
    work.reporter = session_reporter(work.session, true);
    rc = open_trail(options, &work, err);
    if (rc == 0)
        rc = cpuset_devices(options->devices, 1, sets, err);
    member.cores = sets[0];
    member.bind = rc > 0;
    rc = rc > 0 ? rank_open_job(&work, work.assignment, err) : rc;
    if (rc == 0 && work.trainer.kept)
        rc = rank_open_kept(&work, options->state, err);
    if (rc < 0)
        return crew_refuse(&work, (int)work.assignment->rank, rc, err);
    rc = rank_run_epochs(&work, &member, err);
    free(work.nodes);
    kept_close(&kept);
    return rc;
}
