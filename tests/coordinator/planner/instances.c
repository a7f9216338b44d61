/* instances.c - drawing. */
#include "tests/coordinator/planner/instances.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/planner/check.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct draw {
    uint64_t seed, next;
};

static int below(struct draw *draw, int bound)
{
    return (int)random_below(draw->seed, 7, draw->next++, (uint64_t)bound);
}

/* Between low and high, as likely in each octave. */
static double between(struct draw *draw, double low, double high)
{
    return low * pow(high / low, random_uniform(draw->seed, 7, draw->next++));
}

static struct profile draw_profile(struct draw *draw)
{
    struct hardware_link host = {between(draw, 1e-6, 1e-4), between(draw, 1e-11, 1e-8)},
                         network = {between(draw, 1e-5, 1e-3), between(draw, 1e-10, 1e-7)};
    struct profile profile =
        profile_analytic(between(draw, 1e8, 1e11), between(draw, 1e8, 1e11), 0.5, host, network);
    profile.overhead_s = between(draw, 1e-8, 1e-5);
    profile.network_cards = below(draw, 3);
    profile.overlap = between(draw, 1, PROFILE_OVERLAP_MAX);
    return profile;
}

/* So many roles stay that all plans can be looked at. */
static char *draw_forbidden(struct draw *draw, int stay)
{
    static const char *const names[] = {"batch",   "tensor",  "tensor_seq",
                                        "ulysses", "context", "hidden"};
    bool stays[6] = {false};
    char text[256] = "";
    for (int i = 0; i < stay; i++)
        stays[below(draw, 6)] = true;
    for (int i = 0; i < 6; i++)
        if (!stays[i])
            snprintf(text + strlen(text), sizeof text - strlen(text), text[0] ? ", %s" : "%s",
                     names[i]);
    return xstrdup(text);
}

static const char *draw_subset(struct draw *draw, const char *const *subsets, int count)
{
    return subsets[below(draw, count)];
}

void drawn_init(struct drawn *drawn, uint64_t seed)
{
    static const char *const zeros[] = {"1, 2, 3", "2, 3", "1, 3", "1, 2", "0, 2, 3", "0, 1"};
    static const char *const recomputes[] = {"selective, full", "selective", "full", "none, full"};
    struct draw draw = {seed, 0};
    drawn->seed = seed;
    struct error err = {0};
    int layers = 1 + below(&draw, 3);
    drawn->devices = 1 + below(&draw, DRAWN_DEVICES_MAX);
    char *forbidden =
        draw_forbidden(&draw, layers == 3 ? 1 + below(&draw, 2) : 2 + below(&draw, 2));
    const char *zero = draw_subset(&draw, zeros, layers < 3 ? 6 : 4),
               *recompute =
                   layers < 3 ? draw_subset(&draw, recomputes, 4) : recomputes[below(&draw, 2) * 3];
    int batch = 1 + below(&draw, 6), vocab = 36 + below(&draw, 2);
    char *text = xasprintf("apiVersion: gimbal/v1\n"
                           "name: drawn\n"
                           "model: {family: gpt, layers: %d, hidden: 24, heads: 12, seq: 12, "
                           "vocab: %d}\n"
                           "data: {tokens: [corpus.bin]}\n"
                           "train: {steps: 3, global_batch: %d, lr: 0.001}\n"
                           "elastic: {copy_every: 0}\n"
                           "plan: {forbid: {roles: [%s], zero: [%s], recompute: [%s]}}\n",
                           layers, vocab, batch, forbidden, zero, recompute);
    int rc = job_config_parse(text, strlen(text), "job", &drawn->job, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_int_eq(planner_graph(drawn->job, &drawn->graph, NULL), 0);
    for (int i = 0; i < 2; i++)
        drawn->profiles[i] = draw_profile(&draw);
    int hosts = 1 + below(&draw, 2), speeds = 1 + below(&draw, 2);
    uint64_t memory = (uint64_t)between(&draw, 1e5, 2e6);
    for (int i = 0; i < DRAWN_DEVICES_MAX; i++)
        drawn->machines[i] = (struct planner_device){
            "d", hosts == 2 && i >= 2 ? "b" : "a", below(&draw, 3) ? memory : memory * 3 / 2,
            &drawn->profiles[speeds == 2 ? below(&draw, 2) : 0]};
    drawn->request =
        (struct planner_request){drawn->graph, drawn->job, drawn->machines, DRAWN_DEVICES_MAX};
    free(forbidden);
    free(text);
}

void drawn_finish(struct drawn *drawn)
{
    graph_destroy(drawn->graph);
    job_config_destroy(drawn->job);
}
