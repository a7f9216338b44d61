/* held_executor.c - an executor whose training is held: before its step HELD_STEP a rank waits for
 * as long as a test has the file locked that GIMBAL_HOLD names. So a test comes to a job in the
 * middle of its training, however slow the test or fast the job.
 *
 * It is gimbal-executor, linked so that the trainer's calls of interpreter_run() come here (ld
 * --wrap). */
#include "worker/interpreter/interpreter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define HELD_STEP 10 /* as hold.h says */

int __real_interpreter_run(struct interpreter *interpreter, enum program_kind kind, uint64_t step,
                           struct step_result *out, struct error *err);
int __wrap_interpreter_run(struct interpreter *interpreter, enum program_kind kind, uint64_t step,
                           struct step_result *out, struct error *err);

static void wait_until_let_go(void)
{
    const char *path = getenv("GIMBAL_HOLD");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    flock(file, LOCK_SH);
    close(file);
}

int __wrap_interpreter_run(struct interpreter *interpreter, enum program_kind kind, uint64_t step,
                           struct step_result *out, struct error *err)
{
    if (kind == PROGRAM_TRAIN && step == HELD_STEP)
        wait_until_let_go();
    return __real_interpreter_run(interpreter, kind, step, out, err);
}
