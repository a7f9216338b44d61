/* suite.h - what every test program does besides testing: run, count, skip, draw.
 *
 * Check runs each case in a process of its own, so that a crash or a leak (under
 * -Db_sanitize=address) fails that case by its name and the others go on.
 *
 * A random family says how many cases it would like and asks here how many to draw, and from
 * which seed: GIMBAL_TEST_SEED is any text (.ci/run sets the commit, so that every commit draws
 * other cases), GIMBAL_TEST_SHARE a factor (0.1 draws a tenth), GIMBAL_TEST_SOAK=1 draws a
 * hundredfold. A failure prints the two lines that draw the same cases again.
 *
 * What this machine was measured to do all tests of a build folder share, in profiles/ there
 * (GIMBAL_PROFILE_CACHE); a test of measuring itself names a folder of its own. */
#ifndef TESTS_SUPPORT_SUITE_H
#define TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

/* Run the cases of one suite, NULL-ended, and free them. Returns what main returns: 0, 1 when
 * a case failed or there was none, 77 (Meson's "skipped") when all there could be was skipped.
 * usage: return suite_run("base", errors, units, NULL); */
int suite_run(const char *name, TCase *first, ...) __attribute__((sentinel));

/* Say that what is not tested on this machine, and why: one line, counted as one skipped test.
 * Call it in place of adding the cases, before suite_run. */
void suite_skip(const char *what, const char *reason);

/* The seed of every random case, for common/base/random.h; stable where GIMBAL_TEST_SEED is not
 * set. */
uint64_t test_seed(void);

/* How many of count random cases to draw; at least 1. usage: loop_test(.., 0, test_share(300)). */
int test_share(int count);

/* How long to wait for what others do before the test fails, in milliseconds: under a debugger, a
 * sanitizer or on a crowded machine CK_TIMEOUT_MULTIPLIER stretches it, as it does Check's own
 * limits, but not more than tenfold. */
int test_patience_ms(int ms);

/* Whether this is a soak: minutes are welcome. */
bool test_soak(void);

#endif
