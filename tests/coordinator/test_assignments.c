/* test_assignments.c - from jobs to what their workers read. */
#include "common/base/memory.h"
#include "common/message/message.h"
#include "coordinator/assignments/assignments.h"
#include "proto/worker.pb-c.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TERM 9
#define NODE_A 0xa
#define NODE_B 0xb

/* Two ranks on node-a (devices 1 and 0) and one on node-b between them. */
static struct job_rank ranks[] = {{.device = {"node-a", NODE_A, 1}},
                                  {.device = {"node-b", NODE_B, 0}},
                                  {.device = {"node-a", NODE_A, 0}}};
static const struct job job = {.id = "j-4",
                               .text = (char *)"name: small\n",
                               .words = "cancelled by ada",
                               .epoch = 3,
                               .ranks = ranks,
                               .rank_count = 3};
static const struct assignments_epoch epoch = {
    .job = &job,
    .trainers = 3,
    .copy_every = 5,
    .no_copies = true,
    .plan_id = "p-1",
    .plan_json = "{}",
    .hashes = (const uint64_t[]){100, 101, 102},
    .addresses = (const char *const[]){"10.0.0.1", "10.0.0.2", ""},
    .devices = (const char *const[]){"cuda:GPU-1", "", "cuda:GPU-0"},
};

static struct assignments *open_both(void)
{
    struct assignments *assignments = assignments_create(TERM);
    assignments_open(assignments, NODE_A);
    assignments_open(assignments, NODE_B);
    return assignments;
}

/* The record of that revision; yours, by message_free. */
static Gimbal__WorkerRecord *record(const struct assignments *assignments, uint64_t instance,
                                    uint64_t revision)
{
    const struct stream_record *bytes =
        stream_get(assignments_stream(assignments, instance), revision);
    ProtobufCMessage *message;
    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(message_unpack(&gimbal__worker_record__descriptor, bytes->data, bytes->size,
                                    message_quota(bytes->size), &message, NULL),
                     0);
    return (Gimbal__WorkerRecord *)message;
}

static uint64_t revision(const struct assignments *assignments, uint64_t instance)
{
    return stream_revision(assignments_stream(assignments, instance));
}

START_TEST(a_worker_is_assigned_its_ranks_and_no_others)
{
    struct assignments *assignments = open_both();
    assignments_assign(assignments, &epoch);
    ck_assert_uint_eq(revision(assignments, NODE_A), 2);
    ck_assert_uint_eq(revision(assignments, NODE_B), 1);
    for (uint64_t i = 1; i <= 2; i++) {
        Gimbal__WorkerRecord *got = record(assignments, NODE_A, i);
        const Gimbal__Assignment *assignment = got->assignment;
        ck_assert_int_eq(got->record_case, GIMBAL__WORKER_RECORD__RECORD_ASSIGNMENT);
        ck_assert_str_eq(assignment->job, "j-4");
        ck_assert_uint_eq(assignment->epoch, 3);
        ck_assert_uint_eq(assignment->rank, i == 1 ? 0 : 2);
        ck_assert_uint_eq(assignment->device_index, i == 1 ? 1 : 0);
        ck_assert_uint_eq(assignment->program_hash, i == 1 ? 100 : 102);
        ck_assert_uint_eq(assignment->rank_count, 3);
        ck_assert_str_eq(assignment->job_yaml, job.text);
        ck_assert_str_eq(assignment->plan->id, "p-1");
        ck_assert_str_eq(assignment->plan->json, "{}");
        ck_assert_uint_eq(assignment->copy_every, 5);
        ck_assert(assignment->no_copies);
        ck_assert_uint_eq(assignment->n_ranks, 3);
        ck_assert_uint_eq(assignment->ranks[1]->rank, 1);
        ck_assert_str_eq(assignment->ranks[1]->node, "node-b");
        ck_assert_str_eq(assignment->ranks[1]->host_address, "10.0.0.2");
        message_free(&got->base);
    }
    assignments_destroy(assignments);
}
END_TEST

START_TEST(go_and_cancel_come_once_to_each_worker)
{
    struct assignments *assignments = open_both();
    assignments_go(assignments, &job);
    assignments_cancel(assignments, &job);
    for (uint64_t instance = NODE_A; instance <= NODE_B; instance++) {
        ck_assert_uint_eq(revision(assignments, instance), 2);
        Gimbal__WorkerRecord *go = record(assignments, instance, 1);
        ck_assert_int_eq(go->record_case, GIMBAL__WORKER_RECORD__RECORD_GO);
        ck_assert_str_eq(go->go->job, "j-4");
        ck_assert_uint_eq(go->go->epoch, 3);
        Gimbal__WorkerRecord *cancel = record(assignments, instance, 2);
        ck_assert_int_eq(cancel->record_case, GIMBAL__WORKER_RECORD__RECORD_CANCEL);
        ck_assert_uint_eq(cancel->cancel->epoch, 3);
        ck_assert_str_eq(cancel->cancel->reason, "cancelled by ada");
        /* Whose ends are waited for: ranks 0 and 2, and rank 1. */
        ck_assert_uint_eq(cancel->cancel->n_ranks, instance == NODE_A ? 2 : 1);
        ck_assert_uint_eq(cancel->cancel->ranks[cancel->cancel->n_ranks - 1],
                          instance == NODE_A ? 2 : 1);
        message_free(&go->base);
        message_free(&cancel->base);
    }
    assignments_destroy(assignments);
}
END_TEST

START_TEST(a_lost_worker_gets_nothing_and_the_others_all)
{
    struct assignments *assignments = open_both();
    assignments_close(assignments, NODE_B);
    ck_assert_ptr_null(assignments_stream(assignments, NODE_B));
    assignments_assign(assignments, &epoch);
    assignments_cancel(assignments, &job);
    ck_assert_uint_eq(revision(assignments, NODE_A), 3);
    /* Saying either again changes nothing. */
    assignments_close(assignments, NODE_B);
    assignments_open(assignments, NODE_A);
    ck_assert_uint_eq(revision(assignments, NODE_A), 3);
    ck_assert_uint_eq(stream_term(assignments_stream(assignments, NODE_A)), TERM);
    assignments_destroy(assignments);
}
END_TEST

/* Bit 0: node-a was named, bit 1: node-b. */
static unsigned changed(struct assignments *assignments)
{
    unsigned named = 0;
    uint64_t instance;
    while (assignments_changed(assignments, &instance)) {
        unsigned bit = 1u << (instance - NODE_A);
        ck_assert_msg(!(named & bit), "named twice");
        named |= bit;
    }
    return named;
}

START_TEST(who_waits_is_named_once_for_what_is_new)
{
    struct assignments *assignments = open_both();
    ck_assert_uint_eq(changed(assignments), 0);
    assignments_assign(assignments, &epoch);
    assignments_go(assignments, &job);
    ck_assert_uint_eq(changed(assignments), 3);
    ck_assert_uint_eq(changed(assignments), 0);
    assignments_close(assignments, NODE_A);
    ck_assert_uint_eq(changed(assignments), 1);
    assignments_go(assignments, &job);
    ck_assert_uint_eq(changed(assignments), 2);
    assignments_destroy(assignments);
}
END_TEST

START_TEST(what_a_worker_has_is_not_kept_for_as_long_as_it_lives)
{
    struct assignments *assignments = open_both();
    for (int i = 0; i < ASSIGNMENTS_TAKEN_KEPT; i++)
        assignments_assign(assignments, &epoch);
    uint64_t has = revision(assignments, NODE_A), forgotten = has - ASSIGNMENTS_TAKEN_KEPT;
    assignments_taken(assignments, NODE_A, has);
    const struct stream *stream = assignments_stream(assignments, NODE_A);
    ck_assert_ptr_null(stream_get(stream, forgotten));
    ck_assert_ptr_nonnull(stream_get(stream, forgotten + 1));
    ck_assert_ptr_nonnull(stream_get(assignments_stream(assignments, NODE_B), 1));
    assignments_taken(assignments, 0xc, has); /* nobody's */
    assignments_destroy(assignments);
}
END_TEST

SUITE(assignments)
{
    TCase *tcase = tcase_create("assignments");
    tcase_add_test(tcase, a_worker_is_assigned_its_ranks_and_no_others);
    tcase_add_test(tcase, go_and_cancel_come_once_to_each_worker);
    tcase_add_test(tcase, a_lost_worker_gets_nothing_and_the_others_all);
    tcase_add_test(tcase, who_waits_is_named_once_for_what_is_new);
    tcase_add_test(tcase, what_a_worker_has_is_not_kept_for_as_long_as_it_lives);
    return suite_run("assignments", tcase, NULL);
}
