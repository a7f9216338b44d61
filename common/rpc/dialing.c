/* dialing.c - a thread that closes the dialer under the one that waits for it. */
#include "common/rpc/dialing.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct alarm {
    pthread_mutex_t lock;
    pthread_cond_t over;
    nng_dialer dialer;
    struct timespec until;
    bool is_over, has_rung;
};

static void *wait_and_close(void *data)
{
    struct alarm *alarm = data;
    int rc = 0;
    pthread_mutex_lock(&alarm->lock);
    while (!alarm->is_over && rc == 0)
        rc = pthread_cond_clockwait(&alarm->over, &alarm->lock, CLOCK_MONOTONIC, &alarm->until);
    alarm->has_rung = !alarm->is_over;
    pthread_mutex_unlock(&alarm->lock);
    if (alarm->has_rung)
        nng_dialer_close(alarm->dialer);
    return NULL;
}

static void end(struct alarm *alarm, pthread_t thread)
{
    pthread_mutex_lock(&alarm->lock);
    alarm->is_over = true;
    pthread_cond_signal(&alarm->over);
    pthread_mutex_unlock(&alarm->lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&alarm->over);
    pthread_mutex_destroy(&alarm->lock);
}

int dialing_start(nng_dialer dialer, uint32_t patience_ms)
{
    struct alarm alarm = {.dialer = dialer};
    pthread_t thread;
    if (patience_ms == 0)
        return nng_dialer_start(dialer, 0);
    clock_gettime(CLOCK_MONOTONIC, &alarm.until);
    alarm.until.tv_sec += patience_ms / 1000;
    alarm.until.tv_nsec += (long)(patience_ms % 1000) * 1000000;
    if (alarm.until.tv_nsec >= 1000000000) {
        alarm.until.tv_nsec -= 1000000000;
        alarm.until.tv_sec++;
    }
    pthread_mutex_init(&alarm.lock, NULL);
    pthread_cond_init(&alarm.over, NULL);
    if (pthread_create(&thread, NULL, wait_and_close, &alarm) != 0)
        return NNG_ENOMEM;
    int rc = nng_dialer_start(dialer, 0);
    end(&alarm, thread);
    return alarm.has_rung && rc != 0 ? NNG_ETIMEDOUT : rc;
}
