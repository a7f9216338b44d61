/* store_fixture.c - see store_fixture.h. */
#include "tests/coordinator/store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/coordinator/disk.h"
#include "tests/support/suite.h"

char folder[32];
struct store *store;

void set_up(void)
{
    strcpy(folder, "/tmp/gimbal-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    disk_install();
    disk_clear();
    store = NULL;
}

void tear_down(void)
{
    store_close(store);
    disk_clear();
    ck_assert_int_eq(rmdir(folder), 0); /* the disk is in memory */
}

void reopen(void)
{
    store_close(store);
    ck_assert_msg(store_open(folder, &store, &err) == 0, "%s", err.text);
}

struct search {
    uint64_t number;
    struct job *found;
};

static int take_cb(void *data, const struct job *job, struct error *error)
{
    struct search *search = data;
    (void)error;
    if (job->number == search->number)
        search->found = job_copy(job);
    return 0;
}

struct job *job_back(uint64_t number)
{
    struct search search = {.number = number};
    int rc = store_read_jobs(store, SIZE_MAX, take_cb, &search, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    return search.found;
}

struct job job_make(uint64_t number, struct job_rank *ranks, size_t rank_count)
{
    struct job job = {.number = number,
                      .key = (char *)"",
                      .name = (char *)"gpt",
                      .user = (char *)"ada",
                      .text = (char *)"name: gpt\n",
                      .given = (char *)"{}",
                      .named = (char *)"node-a/0\nnode-b/1\n",
                      .origin = (char *)"",
                      .saves_in = (char *)"/c/gpt",
                      .devices_min = 1,
                      .devices_max = 4294967295u,
                      .devices_needed = 2,
                      .kind = JOB_GPU,
                      .state = JOB_RUNNING,
                      .words = "it's \"so\"",
                      .epoch = 3,
                      .plan = "p-1",
                      .saves = true,
                      .releases = true,
                      .holding = true,
                      .ranks = ranks,
                      .rank_count = rank_count,
                      .step = 7,
                      .steps = 9,
                      .loss = 2.5,
                      .tokens_per_s = 1e6,
                      .submitted_ms = 1763766000000,
                      .started_ms = 1763766000001,
                      .held = "ada: \u00b7",
                      .pauses = 2,
                      .resumes = 1,
                      .restarts = 4,
                      .restarts_max = 20,
                      .faults = 2,
                      .reached_step = 6,
                      .again = "restart 4 of 20"};
    snprintf(job.id, sizeof job.id, "j-%llu", (unsigned long long)number);
    return job;
}
