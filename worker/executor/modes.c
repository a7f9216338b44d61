/* modes.c - from a command line, or an assignment, to trainers in threads. */
#include "worker/executor/modes.h"

#include "common/base/memory.h"
#include "common/models/model.h"
#include "worker/checkpoint/shared.h"
#include "worker/executor/probe.h"
#include "worker/executor/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds without an answer from a peer after which a collective gives up. */
#define FABRIC_TIMEOUT_S 30

/* What all ranks of this process share. */
struct work {
    struct session *session;
    struct job_config *job;
    struct graph *graph;
    struct plan *plan;
    struct data_source *data;
    const struct collectives *collectives;
    struct rendezvous rendezvous;
    const char *interface; /* to meet other ranks at; NULL: on loopback */
    struct local_hub *hub;
    struct reporter reporter;
    const char *start; /* as trainer_config's */
    uint64_t start_step;
    struct saver_config saving; /* root NULL: no checkpoints are written */
    uint64_t hash;
    const Gimbal__Assignment *assignment; /* NULL without a cluster */
    pthread_mutex_t lock;
    int running, rc;
    struct error *err;
};

struct rank {
    struct work *work;
    int rank;
    cpu_set_t cores;
    bool bind; /* else the cores are those it was started on */
    pthread_t thread;
};

static int open_work(struct work *work, struct error *err)
{
    struct model_config config = model_config_of(&work->job->model);
    int rc = model_build(&config, &work->graph, err);
    if (rc == 0)
        rc = plan_check(work->plan, work->graph, err);
    if (rc == 0)
        rc = data_open(work->job, &work->data, err);
    return rc;
}

static void close_work(struct work *work)
{
    data_close(work->data);
    plan_destroy(work->plan);
    graph_destroy(work->graph);
    job_config_destroy(work->job);
    local_hub_destroy(work->hub);
    session_destroy(work->session);
}

static const char *node_of(const Gimbal__Assignment *assignment, uint32_t rank)
{
    for (size_t i = 0; i < assignment->n_ranks; i++)
        if (assignment->ranks[i]->rank == rank)
            return assignment->ranks[i]->node;
    return "?";
}

/* Before anything is prepared: what cannot work is refused early. */
static int check_shared(struct rank *rank, struct error *err)
{
    const struct work *work = rank->work;
    if (!work->saving.root)
        return 0;
    const struct shared_test test = {
        .folder = work->saving.root,
        .epoch = work->saving.origin.epoch,
        .rank = rank->rank,
        .ranks = plan_ranks(work->plan),
        .node = node_of(work->assignment, (uint32_t)rank->rank),
        .first = node_of(work->assignment, 0),
        .rendezvous = &work->rendezvous,
    };
    return shared_check(&test, err);
}

static int train_rank(struct rank *rank, const struct device *device, struct error *err)
{
    struct work *work = rank->work;
    struct fabric *fabric = NULL;
    int count = plan_ranks(work->plan), rc = check_shared(rank, err);
    if (rc < 0)
        return rc;
    struct fabric_config config = {.rank = rank->rank,
                                   .count = count,
                                   .timeout_s = FABRIC_TIMEOUT_S,
                                   .rendezvous = &work->rendezvous,
                                   .interface = work->interface,
                                   .shared = work->hub};
    if (count > 1)
        rc = work->collectives->open(&config, &fabric, err);
    if (rc < 0)
        return rc;
    if (fabric)
        session_guard(work->session, work->collectives, fabric);
    struct trainer_config trainer = {
        .job = work->job,
        .graph = work->graph,
        .plan = work->plan,
        .rank = rank->rank,
        .device = device,
        .collectives = work->collectives,
        .fabric = fabric,
        .data = work->data,
        .reporter = &work->reporter,
        .start = work->start,
        .start_step = work->start_step,
        .saving = work->saving.root ? &work->saving : NULL,
        .hash = work->hash,
    };
    rc = trainer_run(&trainer, err);
    if (fabric)
        session_unguard(work->session, fabric);
    work->collectives->close(fabric);
    return rc;
}

static void *rank_run(void *context)
{
    struct rank *rank = context;
    struct work *work = rank->work;
    struct error err = {""};
    int threads = CPU_COUNT(&rank->cores), rc = 0;
    if (rank->bind)
        rc = cpuset_bind(&rank->cores, &threads, &err);
    device_cpu.threads(threads);
    if (rc == 0)
        rc = train_rank(rank, &device_cpu, &err);
    session_stopped(work->session, rank->rank, rc, &err);

    pthread_mutex_lock(&work->lock);
    bool first = work->rc == 0;
    if (rc < 0 && first)
        work->rc = error_set(work->err, session_cancelled(work->session) ? -ECANCELED : rc, "%s",
                             err.text);
    bool last = --work->running == 0;
    pthread_mutex_unlock(&work->lock);
    if (rc < 0 && first)
        session_abort(work->session);
    if (last)
        session_finish(work->session);
    return NULL;
}

/* Start the ranks in threads of their own, and serve the channel meanwhile. */
static int run_ranks(struct work *work, struct rank *ranks, int count, struct error *err)
{
    pthread_mutex_init(&work->lock, NULL);
    work->running = count;
    work->err = err;
    for (int i = 0; i < count; i++)
        if (pthread_create(&ranks[i].thread, NULL, rank_run, &ranks[i]) != 0)
            abort(); /* a process without threads has no memory either */
    session_serve(work->session);
    for (int i = 0; i < count; i++)
        pthread_join(ranks[i].thread, NULL);
    pthread_mutex_destroy(&work->lock);
    return work->rc;
}

/* Nothing was trained: the other side has to know why. */
static int refuse(struct work *work, int rank, int rc, const struct error *err)
{
    session_stopped(work->session, rank, rc, err);
    close_work(work);
    return rc;
}

static int read_plan(const char *path, struct plan **out, struct error *err)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (!file)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    ssize_t length = getdelim(&text, &size, '\0', file);
    fclose(file);
    int rc =
        length < 0 ? error_set(err, -EINVAL, "the plan is empty") : plan_decode(text, out, err);
    free(text);
    return rc < 0 ? error_prefix(err, rc, "%s", path) : 0;
}

static int device_sets(const struct executor_options *options, int count,
                       cpu_set_t sets[CPUSETS_MAX], struct error *err)
{
    if (count > CPUSETS_MAX)
        return error_set(err, -EINVAL, "more than %d ranks in one process", CPUSETS_MAX);
    if (!options->devices) {
        cpuset_share(count, sets);
        return count;
    }
    int found = cpuset_parse_list(options->devices, sets, err);
    if (found >= 0 && count && found != count)
        return error_set(err, -EINVAL, "--devices has %d sets for %d ranks", found, count);
    return found;
}

int executor_local(const struct executor_options *options, struct error *err)
{
    struct work work = {.session = session_create(options->channel),
                        .collectives = &collectives_local};
    static cpu_set_t sets[CPUSETS_MAX];
    session_name(work.session, "local", 1);
    int rc = job_config_load(options->job, &work.job, err);
    if (rc == 0 && work.job->checkpoint.dir)
        rc = error_set(err, -ENOTSUP,
                       "checkpoint.dir '%s': without a cluster nobody lists checkpoints; leave it "
                       "out, or submit the job",
                       work.job->checkpoint.dir);
    if (rc == 0)
        rc = read_plan(options->plan, &work.plan, err);
    if (rc == 0)
        rc = open_work(&work, err);
    if (rc == 0 && plan_ranks(work.plan) > options->local)
        rc = error_set(err, -EINVAL, "the plan has %d ranks, --local allows %d",
                       plan_ranks(work.plan), options->local);
    if (rc == 0)
        rc = device_sets(options, options->local, sets, err);
    if (rc < 0)
        return refuse(&work, 0, rc, err);

    int count = plan_ranks(work.plan);
    struct rank *ranks = xcalloc((size_t)count, sizeof *ranks);
    work.hub = local_hub_create(count);
    work.reporter = session_reporter(work.session, false);
    for (int i = 0; i < count; i++)
        ranks[i] = (struct rank){.work = &work, .rank = i, .cores = sets[i], .bind = true};
    rc = run_ranks(&work, ranks, count, err);
    free(ranks);
    close_work(&work);
    return rc;
}

/* Where this rank is to be found by the others; NULL where all of them are on this host. */
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
    if (assignment->checkpoint[0]) {
        work->start = assignment->checkpoint;
        work->start_step = assignment->start_step;
        session_stepped(work->session, work->start_step);
    }
    if (assignment->checkpoint_folder[0])
        work->saving = (struct saver_config){
            .root = assignment->checkpoint_folder,
            .origin = {.job = assignment->job, .epoch = assignment->epoch},
            .rendezvous = &work->rendezvous,
            .context = work->session,
            .staged = session_stage,
            .complain = session_complain,
            .abandon = session_give_up,
        };
}

int executor_rank(const struct executor_options *options, struct error *err)
{
    struct work work = {.session = session_create(options->channel)};
    const Gimbal__Assignment *assignment;
    int rc = session_assignment(work.session, &assignment, err);
    if (rc < 0) {
        session_destroy(work.session);
        return rc;
    }
    session_name(work.session, assignment->job, assignment->epoch);
    work.assignment = assignment;
    set_checkpoints(&work, assignment);
    work.hash = assignment->program_hash;
    work.collectives = collectives_find("gloo");
    work.interface = own_address(assignment);
    struct rank rank = {.work = &work, .rank = (int)assignment->rank};
    static cpu_set_t sets[CPUSETS_MAX];
    rc = device_sets(options, 1, sets, err);
    rank.cores = sets[0];
    rank.bind = rc > 0;
    if (rc > 0)
        rc = job_config_parse(assignment->job_yaml, strlen(assignment->job_yaml), "job", &work.job,
                              err);
    if (rc == 0)
        rc = plan_decode(assignment->plan ? assignment->plan->json : "", &work.plan, err);
    if (rc == 0)
        rc = open_work(&work, err);
    if (rc == 0 && assignment->rank >= (uint32_t)plan_ranks(work.plan))
        rc = error_set(err, -EINVAL, "the assignment is for rank %u of a plan with %d",
                       assignment->rank, plan_ranks(work.plan));
    if (rc == 0 && plan_ranks(work.plan) > 1 && !work.collectives)
        rc = error_set(err, -ENOSYS,
                       "this gimbal-executor was built without Gloo and cannot join other ranks; "
                       "install libgloo-dev and build again");
    if (rc < 0)
        return refuse(&work, rank.rank, rc, err);
    session_reads(work.session, work.data);
    work.rendezvous = session_rendezvous(work.session);
    work.reporter = session_reporter(work.session, true);
    rc = run_ranks(&work, &rank, 1, err);
    close_work(&work);
    return rc;
}

int executor_probe(const struct executor_options *options, struct error *err)
{
    static cpu_set_t sets[CPUSETS_MAX];
    static struct profile profiles[CPUSETS_MAX];
    const char *fabric = options->fabric ? options->fabric : "gloo";
    const struct collectives *collectives = collectives_find(fabric);
    int count = device_sets(options, options->devices ? 0 : 1, sets, err);
    if (count < 0)
        return count;
    if (!collectives && options->fabric)
        return error_set(err, -ENOSYS, "no collectives '%s' in this build", fabric);
    int rc = probe_run(sets, count, &device_cpu, collectives ? collectives : &collectives_local,
                       options->crowd, profiles, err);
    if (rc < 0)
        return error_prefix(err, rc, "probe");

    struct session *session = session_create(options->channel);
    Gimbal__ExecutorProfile profile = GIMBAL__EXECUTOR_PROFILE__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    char *texts[CPUSETS_MAX];
    for (int i = 0; i < count; i++)
        texts[i] = profile_encode(&profiles[i]);
    profile.n_device_json = (size_t)count;
    profile.device_json = texts;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PROFILE;
    event.profile = &profile;
    session_send(session, &event);
    for (int i = 0; i < count; i++)
        free(texts[i]);
    session_destroy(session);
    return 0;
}
