/* trial.c - one thread per rank, with the programs of all plans on the same fabric. */
#include "bench/regret/trial.h"

#include "bench/bench.h"
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "worker/collectives/rendezvous.h"
#include "worker/hardware/cpuset.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 5
#define STEPS 2 /* of a round */
#define TIMEOUT_S 120

/* How much memory Linux really has mapped for a region. */
enum mapped { MAPPED_RESERVED, MAPPED_RESIDENT, MAPPED_FIGURES };

/* The end of the mapping that has this address, or the address where none may be written. */
static uintptr_t end_of(uintptr_t at)
{
    char line[512], flags[8];
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t found = at;
    while (maps && found == at && fgets(line, sizeof line, maps)) {
        char *rest;
        uintptr_t low = strtoul(line, &rest, 16);
        uintptr_t high = strtoul(rest + 1, &rest, 16);
        if (sscanf(rest, "%7s", flags) == 1 && flags[1] == 'w' && low <= at && at < high)
            found = high;
    }
    if (maps)
        fclose(maps);
    return found;
}

/* Add the bytes from `start` to the end of its writable mapping, behind which is a page that
 * faults; and how many of them are resident, in whole pages: mincore(2) is asked. */
static void mapped_add(const char *start, uint64_t bytes[MAPPED_FIGURES])
{
    uintptr_t at = (uintptr_t)start, end = end_of(at);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), lead = at % page;
    size_t pages = (end - at + lead + page - 1) / page;
    unsigned char *there = xcalloc(pages + 1, 1);
    if (pages > 0 && mincore((char *)start - lead, pages * page, there) < 0)
        perror("mincore");
    bytes[MAPPED_RESERVED] += end - at;
    for (size_t i = 0; i < pages; i++)
        bytes[MAPPED_RESIDENT] += there[i] & 1 ? page : 0;
    free(there);
}

struct session {
    const struct trial_setting *setting;
    struct trial *trials;
    size_t count;
    struct bench_tokens tokens;
    struct feed feed;
    struct local_hub *hub;
    struct local_rendezvous *meeting;
    pthread_barrier_t barrier;
};

struct rank {
    struct session *session;
    int rank;
    pthread_t thread;
    struct interpreter **in;           /* of each plan; NULL: it does without this rank */
    double **before;                   /* of each plan: seconds of its instructions so far */
    double (*rounds)[ROUNDS];          /* of each plan: seconds of a step */
    uint64_t (*bytes)[MAPPED_FIGURES]; /* of each plan */
};

static void run_steps(struct rank *rank, size_t plan, uint64_t first, uint64_t steps)
{
    struct step_result result;
    struct error err;
    for (uint64_t step = first; step < first + steps; step++)
        bench_need(interpreter_run(rank->in[plan], PROGRAM_TRAIN, step, &result, &err), &err);
    bench_need(interpreter_quiesce(rank->in[plan], &err), &err);
}

/* Of the round that an instruction took least in: others disturb, nothing helps. */
static void note_instructions(struct rank *rank, size_t plan)
{
    double *least = rank->session->trials[plan].seconds[rank->rank], *before = rank->before[plan];
    const double *now = interpreter_seconds(rank->in[plan]);
    for (size_t i = 0; i < interpreter_program(rank->in[plan])->instruction_count; i++) {
        least[i] = fmin(least[i], (now[i] - before[i]) / STEPS);
        before[i] = now[i];
    }
}

/* The first step is not measured: it touches the memory. */
static void prepare(struct rank *rank, size_t plan, struct fabric *fabric)
{
    const struct trial_setting *setting = rank->session->setting;
    struct trial *trial = &rank->session->trials[plan];
    int count = plan_ranks(trial->plan);
    struct error err;
    if (rank->rank >= count)
        return;
    struct interpreter_config config = {.device = &device_cpu,
                                        .collectives = setting->library,
                                        .fabric = count > 1 ? fabric : NULL,
                                        .feed = &rank->session->feed,
                                        .optimizer = bench_optimizer};
    struct program *program;
    bench_need(lower(setting->graph, trial->plan, rank->rank, &program, &err), &err);
    trial->programs[rank->rank] = program;
    trial->seconds[rank->rank] = xcalloc(program->instruction_count, sizeof(double));
    rank->before[plan] = xcalloc(program->instruction_count, sizeof(double));
    bench_need(interpreter_prepare(program, &config, &rank->in[plan], &err), &err);
    interpreter_initialize(rank->in[plan], 1);
    run_steps(rank, plan, 0, 1);
    note_instructions(rank, plan);
    for (size_t i = 0; i < program->instruction_count; i++)
        trial->seconds[rank->rank][i] = INFINITY;
}

static void run_round(struct rank *rank, int round)
{
    for (size_t plan = 0; plan < rank->session->count; plan++) {
        pthread_barrier_wait(&rank->session->barrier);
        double begin = bench_now_s();
        if (rank->in[plan])
            run_steps(rank, plan, 1 + (uint64_t)round * STEPS, STEPS);
        rank->rounds[plan][round] = (bench_now_s() - begin) / STEPS;
        if (rank->in[plan])
            note_instructions(rank, plan);
    }
}

static void finish(struct rank *rank, size_t plan)
{
    struct interpreter *in = rank->in[plan];
    if (!in)
        return;
    for (int region = 0; region < REGIONS; region++)
        mapped_add(arena_image(interpreter_arena(in), (enum region)region), rank->bytes[plan]);
}

static void *rank_run(void *context)
{
    struct rank *rank = context;
    struct session *session = rank->session;
    struct rendezvous rendezvous = local_rendezvous_lend(session->meeting);
    struct fabric_config config = {.rank = rank->rank,
                                   .count = session->setting->ranks,
                                   .timeout_s = TIMEOUT_S,
                                   .rendezvous = &rendezvous,
                                   .shared = session->hub};
    struct fabric *fabric;
    struct error err;
    cpu_set_t sets[CPUSETS_MAX];
    int threads;
    cpuset_share(session->setting->ranks, sets);
    bench_need(cpuset_bind(&sets[rank->rank], &threads, &err), &err);
    device_cpu.threads(threads);
    bench_need(session->setting->library->open(&config, &fabric, &err), &err);
    for (size_t plan = 0; plan < session->count; plan++) {
        pthread_barrier_wait(&session->barrier);
        prepare(rank, plan, fabric);
    }
    for (int round = 0; round < ROUNDS; round++)
        run_round(rank, round);
    for (size_t plan = 0; plan < session->count; plan++) {
        finish(rank, plan);
        interpreter_release(rank->in[plan]);
        free(rank->before[plan]);
    }
    pthread_barrier_wait(&session->barrier); /* nobody is left waiting for who has closed */
    session->setting->library->close(fabric);
    return NULL;
}

/* A round takes as long as the rank that takes longest. */
static void judge(const struct rank *ranks, int count, size_t plan, struct trial *trial)
{
    double rounds[ROUNDS] = {0};
    for (int i = 0; i < count; i++) {
        const uint64_t *bytes = ranks[i].bytes[plan];
        for (int round = 0; round < ROUNDS; round++)
            rounds[round] = fmax(rounds[round], ranks[i].rounds[plan][round]);
        if (bytes[MAPPED_RESERVED] > trial->reserved_bytes)
            trial->reserved_bytes = bytes[MAPPED_RESERVED];
        if (bytes[MAPPED_RESIDENT] > trial->resident_bytes)
            trial->resident_bytes = bytes[MAPPED_RESIDENT];
    }
    trial->step_s = bench_median(rounds, ROUNDS);
    trial->best_step_s = rounds[0];
}

void trials_run(const struct trial_setting *setting, struct trial *trials, size_t count)
{
    struct session session = {.setting = setting, .trials = trials, .count = count};
    session.tokens = (struct bench_tokens){setting->seq, BENCH_VOCAB};
    session.feed = bench_feed_of(&session.tokens);
    struct rank ranks[TRIAL_RANKS_MAX];
    session.hub = local_hub_create(setting->ranks);
    session.meeting = local_rendezvous_create(RENDEZVOUS_STAYING);
    pthread_barrier_init(&session.barrier, NULL, (unsigned)setting->ranks);
    for (int i = 0; i < setting->ranks; i++) {
        ranks[i] = (struct rank){.session = &session, .rank = i};
        ranks[i].in = xcalloc(count, sizeof(struct interpreter *));
        ranks[i].before = xcalloc(count, sizeof *ranks[i].before);
        ranks[i].rounds = xcalloc(count, sizeof *ranks[i].rounds);
        ranks[i].bytes = xcalloc(count, sizeof *ranks[i].bytes);
        if (pthread_create(&ranks[i].thread, NULL, rank_run, &ranks[i]) != 0)
            abort();
    }
    for (int i = 0; i < setting->ranks; i++)
        pthread_join(ranks[i].thread, NULL);
    for (size_t plan = 0; plan < count; plan++)
        judge(ranks, setting->ranks, plan, &trials[plan]);
    for (int i = 0; i < setting->ranks; i++) {
        free(ranks[i].in);
        free(ranks[i].before);
        free(ranks[i].rounds);
        free(ranks[i].bytes);
    }
    pthread_barrier_destroy(&session.barrier);
    local_rendezvous_destroy(session.meeting);
    local_hub_destroy(session.hub);
}

void trial_finish(struct trial *trial)
{
    for (int i = 0; i < TRIAL_RANKS_MAX; i++) {
        program_destroy(trial->programs[i]);
        free(trial->seconds[i]);
    }
}
