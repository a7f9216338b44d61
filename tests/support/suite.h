/* suite.h - what all test programs share: running cases, skipping them, and drawing random ones.
 *
 * Check runs each case in a process of its own, so that a crash or a leak (under
 * -Db_sanitize=address) fails that case by name, and the others go on.
 *
 * A family of random cases asks here how many of them to draw and from which seed. Environment:
 * GIMBAL_TEST_SEED is any text (.ci/run sets the commit, so that every commit draws other cases),
 * GIMBAL_TEST_SHARE a factor (0.1 draws a tenth), and GIMBAL_TEST_SOAK=1 draws a hundred times as
 * many. A failure prints the two lines that draw the same cases again.
 *
 * All other variables of ours (GIMBAL_...) are cleared before main(): a test sets those that it is
 * about. GIMBAL_TEST_MODULES is what it finds as GIMBAL_MODULES, and GIMBAL_TEST_CPU_ISA as
 * GIMBAL_CPU_ISA. A path that cannot be there is one below /proc, where nobody can make a file.
 *
 * All tests of a build folder share the profiles that were measured of this machine, in its folder
 * profiles/ (GIMBAL_PROFILE_CACHE); tests of measuring use a folder of their own. */
#ifndef TESTS_SUPPORT_SUITE_H
#define TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

/* The frame of a suite, which is a file: a program holds one or many, and runs the one that its
 * argument names (main.c). Usage: SUITE(utf8) { ...; return suite_run("utf8", cases, NULL); } */
#define SUITE(NAME)                                                                                \
    static int suite_##NAME(void);                                                                 \
    __attribute__((constructor)) static void suite_enlist_##NAME(void)                             \
    {                                                                                              \
        static struct suite_row row = {.name = #NAME, .run = suite_##NAME};                        \
        suite_enlist(&row);                                                                        \
    }                                                                                              \
    static int suite_##NAME(void)

struct suite_row {
    const char *name;
    int (*run)(void);
    struct suite_row *next;
};

/* Called by SUITE before main(); borrows the row. */
void suite_enlist(struct suite_row *row);

/* Run the cases of a suite, which end with NULL, and free them. Returns the exit status for main():
 * 0; 1 if a case failed or there was none; 77, which Meson reports as skipped, if all were skipped.
 * Usage: return suite_run("base", errors, units, NULL); */
int suite_run(const char *name, TCase *first, ...) __attribute__((sentinel));

/* Report that `what` is not tested on this machine, and why: one line, counted as one skipped test.
 * Called instead of adding the cases, before suite_run(). */
void suite_skip(const char *what, const char *reason);

/* The seed of random cases, for common/base/random.h; constant unless GIMBAL_TEST_SEED is set. */
uint64_t test_seed(void);

/* How many of count random cases to draw; at least 1. Usage: loop_test(.., 0, test_share(300)). */
int test_share(int count);

/* Add a test for each row of a table that is long to run: for all of them, or at a smaller share
 * for as many as that, evenly spread and others with every seed; at least one. */
void suite_add_rows(TCase *tcase, const TTest *test, int rows);

/* How long a test waits for others before it fails, in milliseconds: `ms`, multiplied by
 * CK_TIMEOUT_MULTIPLIER, as Check multiplies its own limits, but by no more than 10. That is for
 * debuggers, sanitizers and crowded machines. */
int test_patience_ms(int ms);

/* Whether this is a soak test, which may take minutes (GIMBAL_TEST_SOAK). */
bool test_soak(void);

#endif
