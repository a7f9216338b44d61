/* test_look.c - a process that is stopped, one that sleeps, and one that computes. */
#include "worker/daemon/look.h"

#include "tests/support/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;
static struct look look;

static void start(bool computes)
{
    look = (struct look){0};
    child = check_fork();
    if (child > 0)
        return;
    for (volatile unsigned long i = 0;; i++)
        if (!computes)
            pause();
}

static void end(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

START_TEST(one_that_sleeps_is_neither_stopped_nor_starved)
{
    start(false);
    look_again(&look, child, 1000);
    do /* it may still be on its way to sleep */
        look_again(&look, child, look.at_ms + 1000);
    while (look.starved);
    ck_assert(!look.stopped);
    end();
}
END_TEST

START_TEST(one_that_is_stopped_is_until_it_goes_on)
{
    int status;
    start(false);
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    look_again(&look, child, 1000);
    ck_assert(look.stopped && !look.starved);
    kill(child, SIGCONT);
    waitpid(child, &status, WCONTINUED);
    look_again(&look, child, 2000);
    ck_assert(!look.stopped);
    end();
    look_again(&look, child, 3000); /* it is gone */
    ck_assert(!look.stopped && !look.starved);
}
END_TEST

/* No time has passed for it between the two looks, if they say so. */
START_TEST(one_that_wants_to_compute_and_has_not_is_starved)
{
    start(true);
    look_again(&look, child, 1000);
    ck_assert(!look.starved);
    look_again(&look, child, (uint64_t)1 << 40);
    ck_assert(look.starved);
    look.busy_ms = 0;
    look.at_ms = ((uint64_t)1 << 40) - 1;
    while (look.busy_ms == 0) { /* until it has had some */
        look.at_ms = ((uint64_t)1 << 40) - 1;
        look_again(&look, child, (uint64_t)1 << 40);
    }
    ck_assert(!look.starved);
    end();
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("look");
    tcase_add_test(tcase, one_that_sleeps_is_neither_stopped_nor_starved);
    tcase_add_test(tcase, one_that_is_stopped_is_until_it_goes_on);
    tcase_add_test(tcase, one_that_wants_to_compute_and_has_not_is_starved);
    return suite_run("look", tcase, NULL);
}
