/* test_crew.c - ranks of one process, from joining each other to their ends: those that lead their
 * hosts measure what is between them; and one that fails by itself has told so before others leave,
 * who know nothing of it until then. */
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

/* ---- between hosts ---- */

/* Each rank on a host of its own, or both on one. */
static void assign(Gimbal__Assignment *assignment, Gimbal__RankAddress *ranks, bool apart)
{
    static Gimbal__RankAddress *pointers[CREW_RANKS];
    static char *const hosts[] = {"192.0.2.1", "192.0.2.2"};
    gimbal__assignment__init(assignment);
    for (int i = 0; i < CREW_RANKS; i++) {
        gimbal__rank_address__init(&ranks[i]);
        ranks[i].rank = (uint32_t)i;
        ranks[i].node = "node";
        ranks[i].host_address = hosts[apart ? i : 0];
        pointers[i] = &ranks[i];
    }
    assignment->ranks = pointers;
    assignment->n_ranks = CREW_RANKS;
    assignment->measures_links = true;
    scene.work.assignment = assignment;
}

/* In the memory of the hosts, and of the devices where they have their own. */
static void check_links(size_t count)
{
    ck_assert_uint_eq(scene.link_count, count);
    for (size_t i = 0; i < count; i++) {
        const Gimbal__LinkRecord *link = &scene.links[i];
        ck_assert(link->rank == 0 && link->peer == 1);
        ck_assert_int_eq(link->in_devices, i == 1);
        ck_assert(link->latency_s > 0 && link->seconds_per_byte > 0);
    }
}

static const struct {
    const char *device;
    bool nccl, apart;
    size_t links;
} places[] = {{"cuda", true, true, 2},
              {"cuda", false, true, 2},
              {"cpu", false, true, 1},
              {"cuda", true, false, 0}};

START_TEST(what_is_between_hosts_is_measured_where_data_lies)
{
    Gimbal__RankAddress ranks[CREW_RANKS];
    Gimbal__Assignment assignment;
    crew_scene_open(&scene, places[_i].device, places[_i].nccl, STEPS);
    assign(&assignment, ranks, places[_i].apart);
    end_of(0, "");
    crew_scene_close(&scene);
    check_links(places[_i].links);
    ck_assert_int_eq(scene.steps, STEPS);
}
END_TEST

START_TEST(what_is_known_is_not_measured)
{
    Gimbal__RankAddress ranks[CREW_RANKS];
    Gimbal__Assignment assignment;
    crew_scene_open(&scene, "cuda", true, STEPS);
    assign(&assignment, ranks, true);
    assignment.measures_links = false;
    end_of(0, "");
    crew_scene_close(&scene);
    check_links(0);
}
END_TEST

SUITE(crew)
{
    TCase *tcase = tcase_create("crew");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, ranks_on_devices_train_to_their_end, 0, 2);
    tcase_add_loop_test(tcase, a_rank_that_fails_alone_has_told_so_before_the_others_leave, 0, 2);
    tcase_add_loop_test(tcase, what_is_between_hosts_is_measured_where_data_lies, 0, 4);
    tcase_add_test(tcase, what_is_known_is_not_measured);
    return suite_run("crew", tcase, NULL);
}
