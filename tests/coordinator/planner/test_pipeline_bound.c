/* test_pipeline_bound.c - the bound is the least of all divisions, which are counted through here.
 */
#include "common/base/random.h"
#include "coordinator/planner/exact/pipeline_bound.h"
#include "tests/support/suite.h"

#include <math.h>

#define STAGES_MAX 4
#define BLOCKS_MAX 9
#define PRECISION 1e-3

struct drawn {
    struct pipeline pipeline;
    double pass_s[STAGES_MAX * (BLOCKS_MAX + 1)], step_s[STAGES_MAX * (BLOCKS_MAX + 1)];
    uint64_t seed, next;
};

static double draw(struct drawn *drawn)
{
    return random_uniform(drawn->seed, 1, drawn->next++);
}

/* Blocks take a different time on every stage, and now and then nothing. */
static void draw_pipeline(struct drawn *drawn)
{
    struct pipeline *of = &drawn->pipeline;
    of->stages = 1 + (int)(draw(drawn) * STAGES_MAX);
    of->blocks = of->stages + (int)(draw(drawn) * (BLOCKS_MAX - of->stages + 1));
    of->micro_batches = 1 + (int)(draw(drawn) * 8);
    of->pass_s = drawn->pass_s;
    of->step_s = draw(drawn) < 0.3 ? NULL : drawn->step_s;
    for (int stage = 0; stage < of->stages; stage++)
        for (int b = 0; b < of->blocks; b++) {
            int at = stage * (of->blocks + 1) + b;
            double own = draw(drawn) < 0.1 ? 0 : draw(drawn);
            drawn->pass_s[at + 1] = (b ? drawn->pass_s[at] : 0) + own;
            drawn->step_s[at + 1] =
                (b ? drawn->step_s[at] : 0) + of->micro_batches * own * (0.5 + draw(drawn));
        }
}

/* The least of all divisions of the blocks from `first` on, on `stage` and those after it. */
static double count_through(const struct pipeline *of, int stage, int first, double before,
                            double slowest)
{
    double least = INFINITY;
    const int row = stage * (of->blocks + 1);
    if (stage == of->stages)
        return first == of->blocks ? slowest : INFINITY;
    for (int end = first + 1; end <= of->blocks; end++) {
        double own = of->pass_s[row + end] - of->pass_s[row + first];
        double here = before + of->micro_batches * own;
        if (of->step_s)
            here = fmax(here, of->step_s[row + end] - of->step_s[row + first]);
        least = fmin(least, count_through(of, stage + 1, end, before + own, fmax(slowest, here)));
    }
    return least;
}

START_TEST(the_bound_is_the_least_of_all_divisions)
{
    struct drawn drawn = {.seed = test_seed() + (uint64_t)_i};
    draw_pipeline(&drawn);
    double least = count_through(&drawn.pipeline, 0, 0, 0, 0);
    double known = least * (0.01 + 0.98 * draw(&drawn));
    double bound = pipeline_bound(&drawn.pipeline, known, INFINITY);
    ck_assert_double_le(bound, least * (1 + 1e-12));
    ck_assert_double_ge(bound, least * (1 - 2 * PRECISION));

    /* nothing takes less than a limit below the least, and a known bound is not lowered */
    double most = known + (least - known) / 2;
    ck_assert_double_ge(pipeline_bound(&drawn.pipeline, known, most), most * (1 - 2 * PRECISION));
    ck_assert_double_eq(pipeline_bound(&drawn.pipeline, 2 * least, INFINITY), 2 * least);
}
END_TEST

SUITE(pipeline_bound)
{
    TCase *tcase = tcase_create("pipeline bound");
    tcase_add_loop_test(tcase, the_bound_is_the_least_of_all_divisions, 0, test_share(500));
    return suite_run("pipeline bound", tcase, NULL);
}
