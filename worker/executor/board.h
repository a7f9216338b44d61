/* board.h - the rendezvous of ranks that are threads of this process: what one puts up under a key,
 * all can read. */
#ifndef WORKER_EXECUTOR_BOARD_H
#define WORKER_EXECUTOR_BOARD_H

#include "worker/collectives/collective.h"

#include <pthread.h>
#include <stdbool.h>

struct board {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct notice *notices;
    bool over;
};

void board_init(struct board *board);
void board_finish(struct board *board);
/* Its get waits until somebody has put what it asks for, or until board_end(): -ECANCELED. */
struct rendezvous board_rendezvous(struct board *board);
/* Nobody waits any more, now or later; from any thread. */
void board_end(struct board *board);

#endif
