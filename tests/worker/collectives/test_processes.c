/* test_processes.c - ranks as processes: one that is killed or stopped, and the others after it. */
#include "tests/worker/collectives/cases.h"

#include "common/base/memory.h"
#include "tests/support/ranks.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Gloo forgets its list of addresses when it can bind to none of them. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:gloo::transport::tcp::CreateDeviceAttr";
}

#define RANKS 3
#define VICTIM 1

struct job {
    const struct collectives *library;
    struct rendezvous *first, *second; /* of two epochs */
    pthread_barrier_t *survivors;
    double timeout_s;
    int signal, rc; /* what hits the victim, and what the others are told */
};

static struct fabric *join(const struct job *job, const struct rendezvous *epoch, int rank,
                           int count, struct fabric_group **group)
{
    struct fabric_config config = {
        .rank = rank, .count = count, .timeout_s = job->timeout_s, .rendezvous = epoch};
    const int ranks[RANKS] = {0, 1, 2};
    struct fabric *fabric;
    struct error err;
    ck_assert_msg(job->library->open(&config, &fabric, &err) == 0, "%s", err.text);
    ck_assert_int_eq(job->library->group(fabric, ranks, count, group, NULL), 0);
    return fabric;
}

static void sum_ones(const struct job *job, struct fabric_group *group, int count)
{
    float data[5] = {1, 1, 1, 1, 1};
    ck_assert_int_eq(job->library->all_reduce(group, ELEMENT_F32, data, 5, REDUCTION_SUM, NULL), 0);
    for (int i = 0; i < 5; i++)
        must_equal(data[i], (float)count);
}

/* One rank: the victim falls after the first sum, the others go on without it. */
static void live(const struct job *job, int rank)
{
    struct fabric_group *group;
    struct fabric *fabric = join(job, job->first, rank, RANKS, &group);
    sum_ones(job, group, RANKS);
    if (rank == VICTIM)
        raise(job->signal);

    struct error err;
    float data[5] = {0};
    ck_assert_int_eq(job->library->all_reduce(group, ELEMENT_F32, data, 5, REDUCTION_SUM, &err),
                     job->rc);
    ck_assert_msg(strstr(err.text, "all_reduce in group {0,1,2}: rank "), "'%s'", err.text);
    pthread_barrier_wait(job->survivors);
    job->library->close(fabric);

    fabric = join(job, job->second, rank == 0 ? 0 : 1, RANKS - 1, &group);
    sum_ones(job, group, RANKS - 1);
    job->library->close(fabric);
}

static void job_run(struct job *job)
{
    job->first = test_rendezvous_create(10);
    job->second = test_rendezvous_create(10);
    job->survivors = mmap(NULL, sizeof *job->survivors, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(job->survivors, MAP_FAILED);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(job->survivors, &shared, RANKS - 1);

    pid_t processes[RANKS];
    for (int i = 0; i < RANKS; i++) {
        processes[i] = fork();
        ck_assert_int_ge(processes[i], 0);
        if (processes[i] == 0) {
            live(job, i);
            _exit(EXIT_SUCCESS);
        }
    }
    for (int i = 0; i < RANKS; i++) {
        int status;
        if (i == VICTIM)
            continue;
        ck_assert_int_eq(waitpid(processes[i], &status, 0), processes[i]);
        ck_assert_int_eq(status, 0);
    }
    kill(processes[VICTIM], SIGKILL);
    waitpid(processes[VICTIM], NULL, 0);
    munmap(job->survivors, sizeof *job->survivors);
    test_rendezvous_destroy(job->first);
    test_rendezvous_destroy(job->second);
}

START_TEST(survivors_of_a_killed_rank_hear_at_once_and_meet_again)
{
    struct job job = {collectives_find("gloo"), .timeout_s = 20, .signal = SIGKILL,
                      .rc = -ECONNRESET};
    job_run(&job);
}
END_TEST

START_TEST(survivors_of_a_stopped_rank_hear_after_the_limit_and_meet_again)
{
    struct job job = {collectives_find("gloo"), .timeout_s = 1, .signal = SIGSTOP,
                      .rc = -ETIMEDOUT};
    job_run(&job);
}
END_TEST

#define LARGE (1 << 24) /* elements: more than a connection holds on its way */

/* The connection ends amid the message: half of the memory that it is for cannot be written. */
static void receive_half(const struct job *job, struct fabric *fabric)
{
    struct error err;
    size_t bytes = LARGE * sizeof(float);
    char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(data, MAP_FAILED);
    ck_assert_int_eq(mprotect(data + bytes / 2, bytes / 2, PROT_NONE), 0);
    ck_assert_int_eq(job->library->receive(fabric, 0, 7, ELEMENT_F32, data, LARGE, &err),
                     -ECONNRESET);
    ck_assert_msg(strstr(err.text, "receive from rank 0, tag 7: rank 0 is gone"), "'%s'", err.text);
    munmap(data, bytes);
}

static void send_all(const struct job *job, struct fabric *fabric)
{
    struct fabric_request *request;
    struct error err;
    float *data = xcalloc(LARGE, sizeof *data);
    ck_assert_int_eq(job->library->send(fabric, 1, 7, ELEMENT_F32, data, LARGE, &request, NULL), 0);
    ck_assert_int_eq(job->library->wait(fabric, request, &err), -ECONNRESET);
    ck_assert_msg(strstr(err.text, "send to rank 1, tag 7: rank 1 is gone"), "'%s'", err.text);
    free(data);
}

START_TEST(a_message_under_way_ends_with_its_connection)
{
    struct job job = {collectives_find("gloo"), test_rendezvous_create(10), .timeout_s = 20};
    pid_t processes[2];
    for (int rank = 0; rank < 2; rank++) {
        processes[rank] = fork();
        ck_assert_int_ge(processes[rank], 0);
        if (processes[rank] == 0) {
            struct fabric_group *group;
            struct fabric *fabric = join(&job, job.first, rank, 2, &group);
            (rank ? receive_half : send_all)(&job, fabric);
            job.library->close(fabric);
            _exit(EXIT_SUCCESS);
        }
    }
    for (int rank = 0; rank < 2; rank++) {
        int status;
        ck_assert_int_eq(waitpid(processes[rank], &status, 0), processes[rank]);
        ck_assert_int_eq(status, 0);
    }
    test_rendezvous_destroy(job.first);
}
END_TEST

static void disagree_body(struct test_rank *rank)
{
    struct fabric_group *group;
    const int ranks[] = {0, 1};
    struct error err;
    float data[9] = {0};
    ck_assert_int_eq(rank->library->group(rank->fabric, ranks, 2, &group, NULL), 0);
    size_t count = rank->rank == 0 ? 8 : 9;
    int rc = rank->library->all_reduce(group, ELEMENT_F32, data, count, REDUCTION_SUM, &err);
    ck_assert_msg(rc == -ETIMEDOUT || rc == -ECONNRESET, "%d: %s", rc, err.text);
    pthread_barrier_wait(rank->barrier);
}

START_TEST(members_that_disagree_do_not_mix_their_data)
{
    test_ranks_run(collectives_find("gloo"), 2, 0.3, disagree_body, NULL);
}
END_TEST

START_TEST(ranks_that_do_not_come_are_missed_after_the_limit)
{
    struct rendezvous *rendezvous = test_rendezvous_create(0.2);
    struct fabric_config config = {.rank = 0, .count = 2, .timeout_s = 1, .rendezvous = rendezvous};
    struct fabric *fabric;
    struct error err;
    ck_assert_int_eq(collectives_find("gloo")->open(&config, &fabric, &err), -ETIMEDOUT);
    ck_assert_str_eq(err.text, "gloo: rank 0: get 'gloo/1': nobody has put it");
    test_rendezvous_destroy(rendezvous);
}
END_TEST

START_TEST(an_address_of_another_machine_is_refused)
{
    struct rendezvous *rendezvous = test_rendezvous_create(1);
    struct fabric_config config = {
        .count = 1, .timeout_s = 1, .rendezvous = rendezvous, .interface = "192.0.2.1"};
    struct fabric *fabric;
    struct error err;
    ck_assert_int_eq(collectives_find("gloo")->open(&config, &fabric, &err), -EADDRNOTAVAIL);
    ck_assert_msg(strstr(err.text, "cannot bind to '192.0.2.1'"), "'%s'", err.text);
    test_rendezvous_destroy(rendezvous);
}
END_TEST

TCase *process_cases(void)
{
    TCase *tcase = tcase_create("processes");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, survivors_of_a_killed_rank_hear_at_once_and_meet_again);
    tcase_add_test(tcase, survivors_of_a_stopped_rank_hear_after_the_limit_and_meet_again);
    tcase_add_test(tcase, a_message_under_way_ends_with_its_connection);
    tcase_add_test(tcase, members_that_disagree_do_not_mix_their_data);
    tcase_add_test(tcase, ranks_that_do_not_come_are_missed_after_the_limit);
    tcase_add_test(tcase, an_address_of_another_machine_is_refused);
    return tcase;
}
