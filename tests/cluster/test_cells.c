/* test_cells.c - the fault matrix on real processes: each of tests/cluster/mishaps.h in each phase
 * of a training and of a replan, under a division of the model that is drawn. The job comes to its
 * end with the loss of one that nobody disturbed, and nothing is left behind.
 *
 * A step that is lost or done twice moves that loss by a hundredth, unless it is one of the last,
 * so it is noticed; a sample more or less is not, and is what the simulator's ledger is for. A run
 * draws a few cells; tests/soak/cells does all of them. */
#include "common/base/random.h"
#include "tests/cluster/mishaps.h"
#include "tests/cluster/trio.h"
#include "tests/support/suite.h"

#include <glob.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define CELLS 5 /* of a run that is no soak */
#define EVENT(kind) "\"event\":\"" kind "\""

enum phase { BEGIN, STEP, SAVE, QUIESCE, MOVE, PHASES };

static const char *const phase_names[PHASES] = {
    [BEGIN] = "begin", [STEP] = "step", [SAVE] = "save", [QUIESCE] = "quiesce", [MOVE] = "move"};
static double undisturbed[TRIO_DIVISIONS]; /* 0: not known yet */
static uint64_t draws;

static size_t draw(size_t bound)
{
    return (size_t)random_below(test_seed(), 0, draws++, bound);
}

/* Every cell has a folder for checkpoints of its own, in which the job makes another. */
struct saves {
    char folder[128];
    int watch;
};

static void write_job(const char *division, struct saves *saves)
{
    char more[256];
    snprintf(saves->folder, sizeof saves->folder, "%s-%d", trio.checkpoints, trio.jobs);
    ck_assert_int_eq(mkdir(saves->folder, 0700), 0);
    snprintf(more, sizeof more,
             "elastic: {copy_every: 1, copy_share: 0, stall: 2s}\n"
             "checkpoint: {dir: '%s', every: 20, keep: 2}",
             saves->folder);
    trio_write_job(division, more);
    saves->watch = inotify_init1(IN_CLOEXEC);
    ck_assert_int_ge(inotify_add_watch(saves->watch, saves->folder, IN_CREATE), 0);
}

/* Has one begun? The job's own folder is watched as well, once it is there. */
static bool has_begun(const struct saves *saves)
{
    glob_t found = {0};
    char pattern[160];
    snprintf(pattern, sizeof pattern, "%s/*", saves->folder);
    if (glob(pattern, 0, NULL, &found) == 0)
        ck_assert_int_ge(inotify_add_watch(saves->watch, found.gl_pathv[0], IN_CREATE), 0);
    globfree(&found);
    snprintf(pattern, sizeof pattern, "%s/*/step-*", saves->folder);
    bool begun = glob(pattern, 0, NULL, &found) == 0;
    globfree(&found);
    return begun;
}

/* Until a checkpoint's folder is there: its shards are about to be written. */
static void await_save(const struct saves *saves)
{
    char bytes[4096];
    struct pollfd fd = {.fd = saves->watch, .events = POLLIN};
    while (!has_begun(saves)) {
        ck_assert_int_eq(poll(&fd, 1, test_patience_ms(COMMAND_PATIENCE_MS)), 1);
        ck_assert_int_gt(read(saves->watch, bytes, sizeof bytes), 0);
    }
}

static void await(const char *words)
{
    ck_assert_msg(command_pass(&trio.job, words), "no %s in %s", words, command_last(&trio.job));
}

/* The first node with a rank, from this one on in a circle: a division may leave some out. */
static int find_ranked(int node)
{
    for (int i = 0; i < TRIO_NODES; i++) {
        int at = (node + i) % TRIO_NODES;
        if (!trio.away[at] && command_child(trio.workers[at].pid) > 0)
            return at;
    }
    ck_abort_msg("no node has a rank");
}

/* A loss before the one that counts. */
static int lose_another(int victim)
{
    int other = find_ranked(victim + 1);
    ck_assert_int_ne(other, victim);
    ck_assert_int_eq(kill(trio.workers[other].pid, SIGKILL), 0);
    trio_collect_worker(other, 128 + SIGKILL);
    return other;
}

/* From the drawn victim to one that is hit; returns the node that was lost for it, -1: none. */
static int await_phase(enum phase phase, int *victim, const struct saves *saves)
{
    if (phase == BEGIN)
        await(EVENT("job-running"));
    else if (phase == SAVE)
        await_save(saves);
    else
        await(EVENT("step"));
    if (!trio.away[*victim])
        *victim = find_ranked(*victim);
    if (phase != QUIESCE && phase != MOVE)
        return -1;
    int other = lose_another(*victim);
    await(EVENT("job-replanning"));
    if (phase == MOVE && trio.away[*victim]) { /* one node alone is too few to move to */
        trio_start_worker(other);
        other = -1;
    }
    if (phase == MOVE)
        await(EVENT("job-starting"));
    return other;
}

static double know_undisturbed(size_t division)
{
    struct saves saves;
    if (undisturbed[division] == 0) {
        write_job(trio_divisions[division], &saves);
        close(saves.watch);
        trio_submit();
        undisturbed[division] = trio_finish_job();
    }
    return undisturbed[division];
}

static void check_loss(double expected)
{
    double loss = trio_finish_job();
    ck_assert_msg(fabs(loss - expected) < TRIO_LOSS_LIMIT, "the loss is %g, undisturbed %g", loss,
                  expected);
}

static void run_cell(const struct mishap *mishap, enum phase phase)
{
    struct saves saves;
    size_t division = draw(TRIO_DIVISIONS);
    int victim = (int)draw(TRIO_NODES);
    double expected = know_undisturbed(division);
    printf("%s in %s of node %d, %s\n", mishap->name, phase_names[phase], victim,
           trio_divisions[division]);
    fflush(stdout);
    if (mishap->prepare)
        mishap->prepare(victim);
    write_job(trio_divisions[division], &saves);
    trio_submit();
    int other = await_phase(phase, &victim, &saves);
    mishap->strike(victim);
    if (other >= 0)
        trio_start_worker(other);
    check_loss(expected);
    if (mishap->mend)
        mishap->mend(victim);
    trio_await_all();
    close(saves.watch);
}

START_TEST(a_drawn_mishap_changes_no_loss)
{
    int cells = test_soak() ? CELLS : test_share(CELLS); /* a soak does all, elsewhere */
    for (int i = 0; i < cells; i++)
        run_cell(&mishaps[draw(mishap_count)], (enum phase)draw(PHASES));
}
END_TEST

START_TEST(it_changes_no_loss_in_any_phase)
{
    for (enum phase phase = BEGIN; phase < PHASES; phase++)
        run_cell(&mishaps[_i], phase);
}
END_TEST

/* Without an argument some cells are drawn; --list prints the mishaps, and the name of one has it
 * done in every phase. */
int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    TCase *tcase = tcase_create("cells");
    tcase_add_checked_fixture(tcase, trio_start, trio_stop);
    tcase_set_timeout(tcase, 300);
    if (!wanted)
        tcase_add_test(tcase, a_drawn_mishap_changes_no_loss);
    for (int row = 0; wanted && row < (int)mishap_count; row++) {
        if (strcmp(wanted, "--list") == 0)
            puts(mishaps[row].name);
        else if (strcmp(wanted, mishaps[row].name) == 0)
            tcase_add_loop_test(tcase, it_changes_no_loss_in_any_phase, row, row + 1);
    }
    return wanted && strcmp(wanted, "--list") == 0 ? 0 : suite_run("cells", tcase, NULL);
}
