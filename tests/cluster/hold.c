/* hold.c - a file that the test has locked, or not. */
#include "tests/cluster/hold.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static char path[] = "/tmp/gimbal-hold-XXXXXX";
static int hold;

void hold_open(void)
{
    hold = mkostemp(path, O_CLOEXEC);
    ck_assert_int_ge(hold, 0);
    setenv("GIMBAL_HOLD", path, 1);
}

void hold_close(void)
{
    close(hold);
    unlink(path);
    unsetenv("GIMBAL_HOLD");
}

void hold_take(void)
{
    ck_assert_int_eq(flock(hold, LOCK_EX), 0);
}

void hold_let_go(void)
{
    ck_assert_int_eq(flock(hold, LOCK_UN), 0);
}
