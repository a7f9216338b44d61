/* test_crew.c - ranks of one process, from joining each other to their ends: one that fails by
 * itself has told so before others leave, who know nothing of it until then. */
#include "tests/support/suite.h"
#include "tests/worker/executor/crew_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 3

static struct crew_scene scene;

static int end_of(int rc, const char *words)
{
    struct error err = {""};
    int got = crew_scene_run(&scene, &err);
    ck_assert_msg(got == rc && strstr(err.text, words) != NULL, "%d, %s", got, err.text);
    return got;
}

START_TEST(ranks_on_devices_train_to_their_end)
{
    crew_scene_open(&scene, "cuda", _i, STEPS);
    end_of(0, "");
    crew_scene_close(&scene);
    for (int i = 0; i < CREW_RANKS; i++)
        ck_assert_msg(scene.stopped[i] && !scene.reasons[i][0], "%s", scene.reasons[i]);
    ck_assert_int_eq(scene.steps, STEPS);
}
END_TEST

/* The second rank fails when both have joined and nothing is on its way between them. */
static int fail_alone(void *context, int rank, uint64_t program_hash, struct error *err)
{
    (void)context, (void)program_hash;
    if (rank == 1)
        return error_set(err, -EIO, "the disk is gone");
    crew_scene_await_stopped(&scene, 1);
    return error_set(err, -ECANCELED, "asked to leave, since another rank has failed");
}

START_TEST(a_rank_that_fails_alone_has_told_so_before_the_others_leave)
{
    setenv("EMULATED_QUIET", "1", 1);
    crew_scene_open(&scene, "cuda", _i, STEPS);
    scene.work.reporter.ready = fail_alone;
    end_of(-EIO, "the disk is gone");
    crew_scene_close(&scene);
    ck_assert_str_eq(scene.reasons[1], "the disk is gone");
    ck_assert(scene.stopped[0]);
    ck_assert_int_eq(scene.steps, 0);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("crew");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, ranks_on_devices_train_to_their_end, 0, 2);
    tcase_add_loop_test(tcase, a_rank_that_fails_alone_has_told_so_before_the_others_leave, 0, 2);
    return suite_run("crew", tcase, NULL);
}
