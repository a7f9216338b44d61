/* suite.c - the runner's frame, the environment of a test, and the three variables that steer
 * random families. */
#include "tests/support/suite.h"

#include "common/base/hash.h"
#include "common/base/random.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
#define SOAK_FACTOR 100
#define PATIENCE_FACTOR_MAX 10

static int skipped;

static const char *seed_text(void)
{
    const char *text = getenv("GIMBAL_TEST_SEED");
    return text && *text ? text : "gimbal";
}

uint64_t test_seed(void)
{
    return hash_text(HASH_START, seed_text());
}

bool test_soak(void)
{
    const char *text = getenv("GIMBAL_TEST_SOAK");
    return text && strcmp(text, "1") == 0;
}

static double share_factor(void)
{
    const char *text = getenv("GIMBAL_TEST_SHARE");
    if (!text || !*text)
        return test_soak() ? SOAK_FACTOR : 1;
    char *end;
    double share = strtod(text, &end);
    if (*end || !isfinite(share) || share <= 0) {
        fprintf(stderr, "GIMBAL_TEST_SHARE='%s' is not a factor: write a number above 0\n", text);
        exit(EXIT_FAILURE);
    }
    return share;
}

int test_share(int count)
{
    return (int)fmin(INT_MAX, ceil(fmax(1, count * share_factor())));
}

void suite_add_rows(TCase *tcase, const TTest *test, int rows)
{
    int stride = (int)fmin(rows, fmax(1, 1 / share_factor()));
    int first = stride > 1 ? (int)random_below(test_seed(), 0, 0, (uint64_t)stride) : 0;
    for (int row = first; row < rows; row += stride)
        tcase_add_loop_test(tcase, test, row, row + 1);
}

int test_patience_ms(int ms)
{
    const char *text = getenv("CK_TIMEOUT_MULTIPLIER");
    double factor = text && *text ? strtod(text, NULL) : 1;
    return (int)(ms * fmin(PATIENCE_FACTOR_MAX, fmax(1, factor)));
}

#define OURS "GIMBAL_"
#define OURS_OF_TESTS "GIMBAL_TEST_"
#define OURS_MAX 64

static const struct {
    const char *of_tests, *name;
} given[] = {{"GIMBAL_TEST_MODULES", "GIMBAL_MODULES"}, {"GIMBAL_TEST_CPU_ISA", "GIMBAL_CPU_ISA"}};

/* A test has the environment of a user who has set nothing of ours, and what it sets itself; so
 * have the test programs that it starts. What it is to be given is in a variable of tests. */
__attribute__((constructor)) static void be_clean(void)
{
    char name[OURS_MAX];
    if (getenv("GIMBAL_TEST_CLEANED"))
        return;
    setenv("GIMBAL_TEST_CLEANED", "1", 1);
    for (size_t i = 0; environ[i];) {
        size_t length = strcspn(environ[i], "=");
        bool ours = strncmp(environ[i], OURS, strlen(OURS)) == 0 &&
                    strncmp(environ[i], OURS_OF_TESTS, strlen(OURS_OF_TESTS)) != 0;
        snprintf(name, sizeof name, "%.*s", (int)length, environ[i]);
        if (!ours || length >= sizeof name || unsetenv(name) < 0)
            i++; /* else the next one has moved here */
    }
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const char *value = getenv(given[i].of_tests);
        if (value)
            setenv(given[i].name, value, 1);
    }
    setenv("GIMBAL_PROFILE_CACHE", PROFILE_CACHE, 1);
}

/* Check gives a case 4 seconds, read when the case is made; on a crowded machine that is little. */
__attribute__((constructor)) static void be_patient(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "30", 0);
}

void suite_skip(const char *what, const char *reason)
{
    printf("skip %s: %s\n", what, reason);
    skipped++;
}

int suite_run(const char *name, TCase *first, ...)
{
    Suite *suite = suite_create(name);
    va_list cases;
    va_start(cases, first);
    for (TCase *tcase = first; tcase; tcase = va_arg(cases, TCase *))
        suite_add_tcase(suite, tcase);
    va_end(cases);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int run = srunner_ntests_run(runner), failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (run == 0 && skipped)
        return EXIT_SKIPPED;
    if (run == 0)
        fprintf(stderr, "%s: no case was run; a suite tests something or says why not\n", name);
    if (failed)
        printf("again: GIMBAL_TEST_SEED=%s GIMBAL_TEST_SHARE=%g\n", seed_text(), share_factor());
    return run && !failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
