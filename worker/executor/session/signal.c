/* signal.c - SIGTERM.
 *
 * From the parent, which has a command for stopping with a checkpoint, SIGTERM means: end now. From
 * anybody else it asks for what that command asks for: stop after a step with a checkpoint. If
 * there is nothing to save, or if it comes again, the process ends, and the log says why.
 *
 * If a stranger's signal stops several ranks, they end at about the same time, and the parent may
 * send its own SIGTERM when it hears of the first. A process that was already asked ignores that
 * and comes to its own end, because only it can report why all of them have stopped. */
#include "worker/executor/session/internal.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

void session_listen(struct session *session)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    session->parent = getppid();
    session->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* End as SIGTERM does by default. */
static void die(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Why nothing can be saved; NULL: it can. Needs the lock. A process without an assignment needs no
 * go. */
static const char *obstacle(const struct session *session)
{
    if (session->terminated)
        return "it was asked again before the checkpoint was written";
    if (session->between)
        return "it is between two epochs";
    if (!session->now.saves)
        return "the job has no checkpoint.dir";
    if (session_is_over(session))
        return "it leaves its epoch";
    return session->first && !session->now.go ? "it has not begun to train" : NULL;
}

void session_take_signal(struct session *session)
{
    struct signalfd_siginfo info;
    if (read(session->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if ((pid_t)info.ssi_pid == session->parent) {
        if (!session_terminated(session))
            die();
        return;
    }
    pthread_mutex_lock(&session->lock);
    const char *why_not = obstacle(session);
    if (why_not)
        log_line(LOG_WARN, "SIGTERM from process %" PRIu32 ": it ends, and saves nothing: %s",
                 info.ssi_pid, why_not);
    else
        log_line(LOG_WARN,
                 "SIGTERM from process %" PRIu32
                 ": all ranks stop after a step and save a checkpoint",
                 info.ssi_pid);
    session->terminated = true;
    if (session->now.stop == STOP_NOT)
        session->now.stop = STOP_AND_END;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    if (why_not)
        die();
}
