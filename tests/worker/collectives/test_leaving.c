/* test_leaving.c - what a rank has sent arrives, though it has left and others have before it.
 *
 * A connection that is closed with something unread takes with it what is still on its way. So no
 * rank may write to a peer because of a third one that left: the peer may be about to leave, too.
 * Here it is: the threads that read Gloo's sockets stand still when the test says so. */
#include "tests/worker/collectives/cases.h"

#include "common/base/memory.h"
#include "tests/support/ranks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SENDER, LEAVER, READER, RANKS };

#define COUNT 60000 /* elements: more than a reader takes unasked, less than a sender keeps */
#define LIMIT_S 20

struct stage {
    struct rendezvous *rendezvous;
    sem_t reader_waits, sender_is_deaf, sender_may_send, reader_may_see;
    volatile bool reader_is_blind;
};

static struct stage *stage;
static int own_rank = -1;
static volatile bool deaf; /* of this process */

static const struct collectives *gloo(void)
{
    return collectives_find("gloo");
}

/* In place of libc's, for Gloo: a rank that stands still reads nothing. */
int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
    int (*real)(int, struct epoll_event *, int, int);
    *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
    int count = real(epoll, events, max, timeout);
    while (deaf)
        pause();
    if (own_rank == READER && stage->reader_is_blind)
        sem_wait(&stage->reader_may_see);
    return count;
}

static void reader_awaits(int peer)
{
    if (peer == SENDER)
        sem_post(&stage->reader_waits);
}

static struct fabric *join(void)
{
    struct fabric_config config = {.rank = own_rank,
                                   .count = RANKS,
                                   .timeout_s = LIMIT_S,
                                   .rendezvous = stage->rendezvous,
                                   .awaits_cb = own_rank == READER ? reader_awaits : NULL};
    struct fabric *fabric;
    struct error err;
    ck_assert_msg(gloo()->open(&config, &fabric, &err) == 0, "%s", err.text);
    return fabric;
}

static void send_all(struct fabric *fabric, int peer, const float *data, size_t count)
{
    struct fabric_request *request;
    ck_assert_int_eq(gloo()->send(fabric, peer, 7, ELEMENT_F32, data, count, &request, NULL), 0);
    ck_assert_int_eq(gloo()->wait(fabric, request, NULL), 0);
}

/* Knows by a message behind it that the reader's request has been read, and reads no more. */
static void live_as_sender(struct fabric *fabric)
{
    float word, *data = values(SENDER, 0, COUNT);
    ck_assert_int_eq(gloo()->receive(fabric, READER, 7, ELEMENT_F32, &word, 1, NULL), 0);
    deaf = true;
    sem_post(&stage->sender_is_deaf);
    sem_wait(&stage->sender_may_send);
    send_all(fabric, READER, data, COUNT);
}

static void live_as_leaver(struct fabric *fabric)
{
    sem_wait(&stage->sender_is_deaf);
    gloo()->close(fabric);
}

static void *read_run(void *context)
{
    struct error err;
    float *data = xcalloc(COUNT, sizeof *data);
    ck_assert_msg(gloo()->receive(context, SENDER, 7, ELEMENT_F32, data, COUNT, &err) == 0, "%s",
                  err.text);
    for (size_t i = 0; i < COUNT; i++)
        must_equal(data[i], value(SENDER, 0, i));
    free(data);
    return NULL;
}

static void live_as_reader(struct fabric *fabric)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_run, fabric), 0);
    sem_wait(&stage->reader_waits);
    send_all(fabric, SENDER, &(float){1}, 1);
    pthread_join(thread, NULL);
    gloo()->close(fabric);
}

/* ---- the parent: who does what when ---- */

static bool all_sleep(pid_t process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *threads = opendir(path);
    ck_assert_ptr_nonnull(threads);
    bool all = true;
    for (const struct dirent *each = readdir(threads); each; each = readdir(threads))
        all = all && (each->d_name[0] == '.' || thread_sleeps(process, atoi(each->d_name)));
    closedir(threads);
    return all;
}

static void must_end_well(pid_t process)
{
    int status;
    ck_assert_int_eq(waitpid(process, &status, 0), process);
    ck_assert_int_eq(status, 0);
}

START_TEST(what_was_sent_arrives_though_its_sender_and_another_left)
{
    static void (*const lives[RANKS])(struct fabric *) = {live_as_sender, live_as_leaver,
                                                          live_as_reader};
    pid_t processes[RANKS];
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(stage, MAP_FAILED);
    stage->rendezvous = test_rendezvous_create(10);
    sem_init(&stage->reader_waits, 1, 0);
    sem_init(&stage->sender_is_deaf, 1, 0);
    sem_init(&stage->sender_may_send, 1, 0);
    sem_init(&stage->reader_may_see, 1, 0);
    for (int rank = 0; rank < RANKS; rank++) {
        processes[rank] = fork();
        ck_assert_int_ge(processes[rank], 0);
        if (processes[rank] == 0) {
            own_rank = rank;
            lives[rank](join());
            _exit(EXIT_SUCCESS);
        }
    }
    must_end_well(processes[LEAVER]);
    while (!all_sleep(processes[READER]))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    stage->reader_is_blind = true;
    sem_post(&stage->sender_may_send);
    must_end_well(processes[SENDER]);
    stage->reader_is_blind = false;
    sem_post(&stage->reader_may_see);
    must_end_well(processes[READER]);
    test_rendezvous_destroy(stage->rendezvous);
    munmap(stage, sizeof *stage);
}
END_TEST

TCase *leaving_cases(void)
{
    TCase *tcase = tcase_create("leaving");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_was_sent_arrives_though_its_sender_and_another_left);
    return tcase;
}
