/* wait.c - what ranks wait for between two steps: go, the end of a pause, a list of checkpoints. */
#include "worker/executor/session/internal.h"

#include <errno.h>

int session_wait_go(struct session *session, struct error *err)
{
    pthread_mutex_lock(&session->lock);
    while (!session->now.go && !session_is_over(session) && session->now.stop == STOP_NOT)
        pthread_cond_wait(&session->changed, &session->lock);
    bool go = session->now.go && !session_is_over(session);
    pthread_mutex_unlock(&session->lock);
    return go ? 0 : error_set(err, -ECANCELED, "cancelled before the first step");
}

bool session_goes(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool goes = session->now.go;
    pthread_mutex_unlock(&session->lock);
    return goes;
}

bool session_wants_pause(struct session *session, uint64_t pauses)
{
    pthread_mutex_lock(&session->lock);
    bool wants = session->now.paused > pauses;
    pthread_mutex_unlock(&session->lock);
    return wants;
}

void session_saves(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    session->now.saves = true;
    pthread_mutex_unlock(&session->lock);
}

bool session_wants_stop(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool wants = session->now.stop != STOP_NOT;
    pthread_mutex_unlock(&session->lock);
    return wants;
}

bool session_wants_end(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    bool wants = session->now.stop == STOP_AND_END;
    pthread_mutex_unlock(&session->lock);
    return wants;
}

int session_wait_resumed(struct session *session, uint64_t number, struct error *err)
{
    pthread_mutex_lock(&session->lock);
    while (session->now.resumed < number && !session_is_over(session) &&
           session->now.stop == STOP_NOT)
        pthread_cond_wait(&session->changed, &session->lock);
    bool resumed = session->now.resumed >= number, over = session_is_over(session);
    pthread_mutex_unlock(&session->lock);
    return resumed ? 0 : over ? error_set(err, -ECANCELED, "cancelled while it was paused") : 1;
}

int session_stage(void *context, const struct saver_report *report, struct saver_listed *listed,
                  struct error *err)
{
    struct session *session = context;
    session_tell_staged(session, report);
    pthread_mutex_lock(&session->lock);
    while (session->now.listed_step < report->step && !session_is_over(session) &&
           !session->now.gave_up)
        pthread_cond_wait(&session->changed, &session->lock);
    bool taken = session->now.listed_step >= report->step;
    *listed = taken ? session->now.listed : (struct saver_listed){0};
    if (taken)
        session->now.listed = (struct saver_listed){0};
    pthread_mutex_unlock(&session->lock);
    return taken ? 0 : error_set(err, -ECANCELED, "cancelled before it was listed");
}

void session_give_up(void *context)
{
    struct session *session = context;
    pthread_mutex_lock(&session->lock);
    session->now.gave_up = true;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}
