/* run.c - measures what overlapping communication with computation saves: GPT 6 x 384, 256 tokens,
 * 8 samples per step, on two ranks of one core each with a link of 1 Gbit/s between them.
 *
 *     run [DIVISION]    dp2, zero2, zero3, pp2, copies_zero2 or copies_pp2; by default all
 *
 * Each division is trained by turns on one queue and on two, in ROUNDS rounds of a few steps each;
 * the median round counts. With copies it is trained without copies of the state, with copies
 * between the steps, and with copies beside them. Exposed is the time during which computing stands
 * still because data is moved, or because it waits for the queue that moves it, by the timestamps
 * of the instructions. */
#include "bench/bench.h"
#include "bench/overlap/link.h"
#include "bench/overlap/rank.h"
#include "tests/support/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 2
#define RATE "1gbit"

static const struct division divisions[] = {
    {"dp2", 1, "batch", 1, 0},
    {"zero2", 1, "batch", 1, 2},
    {"zero3", 1, "batch", 1, 3},
    {"pp2", 2, NULL, 8, 0},
};
static const struct division copied[] = {
    {"copies_zero2", 1, "batch", 1, 2},
    {"copies_pp2", 2, NULL, 8, 0},
};

/* What the processes share. */
struct board {
    struct figures figures[RANKS][FIGURES];
};

typedef void measure_fn(const struct training *training, struct figures *out);

static double median(const double *rounds)
{
    double sorted[ROUNDS];
    memcpy(sorted, rounds, sizeof sorted);
    return bench_median(sorted, ROUNDS);
}

/* Exposed over moved, both of all ranks, of the median round. */
static double exposed_share(const struct board *board, enum turn turn)
{
    double shares[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double moved = 0, exposed = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            moved += board->figures[rank][turn].moved_s[round];
            exposed += board->figures[rank][turn].exposed_s[round];
        }
        shares[round] = exposed / moved;
    }
    return median(shares);
}

static void print(const struct division *division, const struct board *board)
{
    const struct figures *one = &board->figures[0][TURN_ONE_QUEUE];
    const struct figures *two = &board->figures[0][TURN_TWO_QUEUES];
    double ratios[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        ratios[round] = one->step_s[round] / two->step_s[round];
    printf("bench overlap/exposed_comm_%s_1gbit %.3f ratio  # of %.3f s moved a step; on one "
           "queue %.3f s\n",
           division->name, exposed_share(board, TURN_TWO_QUEUES), median(two->moved_s),
           median(one->exposed_s));
    printf("bench overlap/step_%s_s %.4f s  # on one queue %.4f s\n", division->name,
           median(two->step_s), median(one->step_s));
    printf("bench overlap/gain_%s %.3f ratio  # step on one queue over step on two, in turns\n",
           division->name, median(ratios));
    fflush(stdout);
}

/* The median over the rounds of the seconds by which a step is longer than without copies. */
static double median_added(const struct figures *figures, enum copying copying)
{
    double added[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        added[round] = figures[copying].step_s[round] - figures[COPYING_NOT].step_s[round];
    return median(added);
}

static void print_copies(const struct division *division, const struct board *board)
{
    const struct figures *figures = board->figures[0];
    printf("bench overlap/%s_added_s %.4f s  # to a step of %.4f s; between two steps %.4f s\n",
           division->name, median_added(figures, COPYING_BESIDE),
           median(figures[COPYING_NOT].step_s), median_added(figures, COPYING_BETWEEN));
    fflush(stdout);
}

/* The process of a rank: into its namespace, and when the link is there to work. */
static pid_t start(const struct division *division, measure_fn *measure_rank, int rank,
                   const struct rendezvous *rendezvous, struct board *board, int entered,
                   int joined)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char byte = 0;
    if (!link_enter() || write(entered, &byte, 1) != 1 || read(joined, &byte, 1) != 1)
        _exit(EXIT_FAILURE);
    struct training training = training_open(division, rank, rendezvous, link_address(rank));
    measure_rank(&training, board->figures[rank]);
    training_close(&training);
    _exit(EXIT_SUCCESS);
}

static bool measure(const struct division *division, measure_fn *measure_rank, struct board *board)
{
    struct rendezvous *rendezvous = test_rendezvous_create(30);
    int entered[2], joined[2];
    pid_t pids[RANKS];
    char bytes[RANKS] = {0};
    if (pipe(entered) < 0 || pipe(joined) < 0)
        return false;
    for (int rank = 0; rank < RANKS; rank++)
        pids[rank] = start(division, measure_rank, rank, rendezvous, board, entered[1], joined[0]);
    for (int rank = 0; rank < RANKS; rank++)
        if (read(entered[0], bytes, 1) != 1)
            return false;
    /* Without the link both processes end: nobody writes any more. */
    bool well = link_join(pids, RATE) && write(joined[1], bytes, RANKS) == RANKS;
    close(joined[0]), close(joined[1]), close(entered[0]), close(entered[1]);
    for (int rank = 0; rank < RANKS; rank++) {
        int status;
        well = waitpid(pids[rank], &status, 0) == pids[rank] && status == 0 && well;
    }
    test_rendezvous_destroy(rendezvous);
    return well;
}

static void need(bool measured, const struct division *division)
{
    if (measured)
        return;
    fprintf(stderr, "overlap: %s was not measured\n", division->name);
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    const char *missing = collectives_find("gloo") ? link_missing() : "Gloo is not built in";
    if (missing) {
        printf("bench overlap/exposed_comm_dp2_1gbit - skipped %s\nbench overlap done\n", missing);
        return EXIT_SUCCESS;
    }
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return EXIT_FAILURE;
    for (size_t i = 0; i < sizeof divisions / sizeof *divisions; i++) {
        if (argc > 1 && strcmp(argv[1], divisions[i].name) != 0)
            continue;
        need(measure(&divisions[i], rank_measure, board), &divisions[i]);
        print(&divisions[i], board);
    }
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        if (argc > 1 && strcmp(argv[1], copied[i].name) != 0)
            continue;
        need(measure(&copied[i], rank_measure_copies, board), &copied[i]);
        print_copies(&copied[i], board);
    }
    printf("bench overlap done\n");
    return EXIT_SUCCESS;
}
