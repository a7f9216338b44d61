/* modes.c - all ranks of a job as threads of this process, without a cluster. */
#include "worker/executor/modes.h"

#include "common/base/memory.h"
#include "worker/executor/crew.h"
#include "worker/executor/local_saving.h"
#include "worker/kernels/modules.h"

#include <errno.h>
#include <stdlib.h>

/* Set up the checkpoints of training without a cluster. */
static int set_local_saving(struct work *work, const struct executor_options *options,
                            struct error *err)
{
    struct job_checkpoint *checkpoint = &work->job->checkpoint;
    if (options->checkpoint) {
        free(checkpoint->dir);
        checkpoint->dir = xstrdup(options->checkpoint);
        checkpoint->keep = checkpoint->keep ? checkpoint->keep : CHECKPOINTS_KEPT;
    }
    if (!checkpoint->dir)
        return options->resume ? error_set(err, -EINVAL, "no checkpoint.dir to resume from") : 0;
    int rc =
        work_fault(local_saving_open(work->job, options->resume, work->session, &work->local, err));
    if (rc < 0)
        return rc;
    uint64_t step;
    work->start = local_saving_start(work->local, &step);
    work->start_age = (struct move_age){.step = step};
    work->saving = local_saving_config(work->local);
    session_stepped(work->session, step);
    session_saves(work->session);
    return 0;
}

int executor_local(const struct executor_options *options, struct error *err)
{
    struct work work = {.session = session_create(options->channel),
                        .collectives = &collectives_local};
    static cpu_set_t sets[CPUSETS_MAX];
    session_listen(work.session);
    session_name(work.session, "local", 1);
    int rc = device_open(options->device ? options->device : "cpu", &work.device, err);
    if (rc == 0)
        rc = job_config_load(options->job, &work.job, err);
    if (rc == 0)
        rc = set_local_saving(&work, options, err);
    if (rc == 0)
        rc = plan_load(options->plan, &work.plan, err);
    if (rc == 0)
        rc = work_open(&work, err);
    if (rc == 0)
        rc = plan_check(work.plan, work.graph, err);
    if (rc == 0 && plan_ranks(work.plan) > options->local)
        rc = error_set(err, -EINVAL, "the plan has %d ranks, --local allows %d",
                       plan_ranks(work.plan), options->local);
    if (rc == 0)
        rc = cpuset_devices(options->devices, options->local, sets, err);
    if (rc < 0)
        return crew_refuse(&work, 0, rc, err);

    int count = plan_ranks(work.plan);
    struct rank *ranks = xcalloc((size_t)count, sizeof *ranks);
    work.hub = local_hub_create(count);
    work.reporter = session_reporter(work.session, false);
    for (int i = 0; i < count; i++)
        ranks[i] = (struct rank){.work = &work, .rank = i, .cores = sets[i], .bind = true};
    rc = crew_run(&work, ranks, count, err);
    free(ranks);
    work_close(&work);
    return rc;
}
