/* test_living.c - what is asked of a cluster that runs: lists of its nodes and jobs, and plans for
 * its nodes by the verbs of `gimbal plan` that plan by themselves. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NO_PLAN 3 /* exit statuses */
#define NOT_NOW 75

/* A job has run on both nodes, so both are known. */
static void set_up(void)
{
    struct command events;
    pair_start();
    pair_write_job(2, "%s", "");
    pair_submit(&events);
    ck_assert_int_eq(command_finish(&events), 0);
}

START_TEST(the_nodes_are_those_that_gimbal_nodes_lists)
{
    char path[128];
    snprintf(path, sizeof path, "%s/nodes.json", pair.folder);
    ck_assert_int_eq(PAIR_GIMBAL("nodes", "-o", "json"), 0);
    ck_assert_int_eq(file_write(path, pair.command.out, 0600, NULL), 0);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "explain", pair.job_path, "--cluster", path, "-o", "json"),
                     0);
    char *recorded = xstrdup(pair.command.out);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "explain", pair.job_path, "-o", "json"), 0);
    ck_assert_str_eq(pair.command.out, recorded);
    free(recorded);
}
END_TEST

static size_t listed(const char *member)
{
    json_t *root = json_loads(pair.command.out, 0, NULL);
    size_t count = json_array_size(json_object_get(root, member));
    json_decref(root);
    return count;
}

START_TEST(lists_are_of_those_that_are_named)
{
    ck_assert_int_eq(PAIR_GIMBAL("nodes", "node-b", "node-b", "-o", "json"), 0);
    ck_assert_uint_eq(listed("nodes"), 1);
    ck_assert_ptr_nonnull(strstr(pair.command.out, "\"node-b\""));
    ck_assert_int_eq(PAIR_GIMBAL("nodes", "node-b", "node-a", "-o", "json"), 0);
    ck_assert_uint_eq(listed("nodes"), 2);
    ck_assert_int_eq(PAIR_GIMBAL("nodes", "node-c"), 65);
    ck_assert_ptr_nonnull(strstr(pair.command.err, "there is no node 'node-c'"));
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "-o", "json"), 0);
    ck_assert_uint_eq(listed("jobs"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "j-1", "-o", "json"), 0); /* though it is over */
    ck_assert_uint_eq(listed("jobs"), 1);
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "j-2"), 65);
    ck_assert_ptr_nonnull(strstr(pair.command.err, "there is no job 'j-2'"));
}
END_TEST

START_TEST(every_verb_asks_for_them)
{
    ck_assert_int_eq(PAIR_GIMBAL("plan", "explain", pair.job_path), 0);
    ck_assert_msg(strstr(pair.command.out, "pp1·tp2") != NULL, "%s", pair.command.out);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "show", "j-1", "-o", "json"), 0);
    json_t *plan = json_loads(pair.command.out, 0, NULL);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "explain", "j-1"), 0);
    ck_assert_msg(strstr(pair.command.out, json_string_value(json_object_get(plan, "id"))) ==
                      pair.command.out,
                  "%s", pair.command.out);
    json_decref(plan);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "explain", "j-1", "-f", pair.job_path), 64);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "why-not", "dp=2", "-f", pair.job_path), 0);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "what-if", "--link", "network=4x", pair.job_path), 0);
}
END_TEST

START_TEST(a_job_without_checkpoints_says_what_it_lacks)
{
    ck_assert_int_eq(PAIR_GIMBAL("generate", "j-1"), 65);
    ck_assert_msg(strstr(pair.command.err, "j-1 has saved nothing: neither its job file "
                                           "(checkpoint.dir) nor the coordinator's settings "
                                           "(checkpoints) name a folder") != NULL,
                  "%s", pair.command.err);
}
END_TEST

/* It has the port, so none is to be started there. */
START_TEST(a_coordinator_that_is_stopped_is_told_from_none)
{
    ck_assert_int_eq(kill(pair.cluster.coordinator, SIGSTOP), 0);
    ck_assert_int_eq(PAIR_GIMBAL("jobs", "--timeout", "300ms"), 69);
    ck_assert_int_eq(kill(pair.cluster.coordinator, SIGCONT), 0);
    ck_assert_msg(
        strstr(pair.command.err, "nothing came back in time; what runs there is stopped") != NULL,
        "%s", pair.command.err);
    ck_assert_ptr_null(strstr(pair.command.err, "gimbal-coordinator"));
    ck_assert_int_eq(PAIR_GIMBAL("jobs"), 0);
}
END_TEST

START_TEST(nodes_that_get_no_work_are_left_out)
{
    ck_assert_int_eq(PAIR_GIMBAL("drain", "node-b"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "explain", pair.job_path), NO_PLAN);
    ck_assert_msg(strstr(pair.command.err, "the job needs 2 devices of one kind") != NULL, "%s",
                  pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("plan", pair.job_path), NO_PLAN); /* the coordinator agrees */
    ck_assert_int_eq(PAIR_GIMBAL("drain", "node-a"), 0);
    ck_assert_int_eq(PAIR_GIMBAL("plan", "explain", pair.job_path), NOT_NOW);
    ck_assert_msg(strstr(pair.command.err, "gets jobs now: 2 are drained, and 'gimbal undrain") !=
                      NULL,
                  "%s", pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("plan", pair.job_path), NOT_NOW);
    ck_assert_msg(strstr(pair.command.err, "2 with 2 devices are drained, and 'gimbal undrain") !=
                      NULL,
                  "%s", pair.command.err);
    ck_assert_int_eq(PAIR_GIMBAL("submit", "--dry-run", "-f", pair.job_path), NOT_NOW);
}
END_TEST

SUITE(living)
{
    TCase *tcase = tcase_create("living");
    tcase_add_checked_fixture(tcase, set_up, pair_stop);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_nodes_are_those_that_gimbal_nodes_lists);
    tcase_add_test(tcase, lists_are_of_those_that_are_named);
    tcase_add_test(tcase, every_verb_asks_for_them);
    tcase_add_test(tcase, a_job_without_checkpoints_says_what_it_lacks);
    tcase_add_test(tcase, a_coordinator_that_is_stopped_is_told_from_none);
    tcase_add_test(tcase, nodes_that_get_no_work_are_left_out);
    return suite_run("living", tcase, NULL);
}
