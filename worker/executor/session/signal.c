/* signal.c - SIGTERM.
 *
 * From the process that started this one it means: now. That one has a command for stopping with a
 * checkpoint. From anybody else it asks for what the command asks for; where there is nothing to
 * save, and when it comes again, it ends the process too, and a line of the log says why.
 *
 * The ranks that stop because of a stranger's signal come to their ends at about the same time, and
 * where another's is heard of first this process is to end at once. It comes to its own end
 * instead: it alone can say why all of them have stopped. */
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

static void die(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Under the lock: why nothing can be saved; NULL: it can. Without an assignment nobody says go. */
static const char *obstacle(const struct session *session)
{
    if (session->terminated)
        return "it was asked again before the checkpoint was written";
    if (session->between)
        return "it is between two epochs";
    if (!session->saves)
        return "the job has no checkpoint.dir";
    if (session_is_over(session))
        return "it leaves its epoch";
    return session->first && !session->go ? "it has not begun to train" : NULL;
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
    session->terminated = session->stop = true;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    if (why_not)
        die();
}
