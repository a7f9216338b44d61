/* board.c - a list under a lock. */
#include "worker/executor/board.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct notice {
    struct notice *next;
    char *key;
    void *value;
    size_t size;
};

void board_init(struct board *board)
{
    *board = (struct board){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}

void board_finish(struct board *board)
{
    while (board->notices) {
        struct notice *notice = board->notices;
        board->notices = notice->next;
        free(notice->key);
        free(notice->value);
        free(notice);
    }
    pthread_cond_destroy(&board->changed);
    pthread_mutex_destroy(&board->lock);
}

static int put(void *context, const char *key, const void *value, size_t size, struct error *err)
{
    struct board *board = context;
    struct notice *notice = xcalloc(1, sizeof *notice);
    (void)err;
    notice->key = xstrdup(key);
    notice->value = xcalloc(1, size);
    memcpy(notice->value, value, size);
    notice->size = size;
    pthread_mutex_lock(&board->lock);
    notice->next = board->notices;
    board->notices = notice;
    pthread_cond_broadcast(&board->changed);
    pthread_mutex_unlock(&board->lock);
    return 0;
}

static const struct notice *find(const struct board *board, const char *key)
{
    const struct notice *notice = board->notices;
    while (notice && strcmp(notice->key, key) != 0)
        notice = notice->next;
    return notice;
}

static int get(void *context, const char *key, void *value, size_t *size, struct error *err)
{
    struct board *board = context;
    const struct notice *notice;
    pthread_mutex_lock(&board->lock);
    while (!(notice = find(board, key)) && !board->over)
        pthread_cond_wait(&board->changed, &board->lock);
    if (notice) {
        *size = notice->size < *size ? notice->size : *size;
        memcpy(value, notice->value, *size);
    }
    pthread_mutex_unlock(&board->lock);
    return notice ? 0 : error_set(err, -ECANCELED, "another rank has failed");
}

struct rendezvous board_rendezvous(struct board *board)
{
    return (struct rendezvous){board, put, get};
}

void board_end(struct board *board)
{
    pthread_mutex_lock(&board->lock);
    board->over = true;
    pthread_cond_broadcast(&board->changed);
    pthread_mutex_unlock(&board->lock);
}
