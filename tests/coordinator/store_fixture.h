/* store_fixture.h - a store on a disk that is in memory, for the tests of what it keeps. */
#ifndef TESTS_COORDINATOR_STORE_FIXTURE_H
#define TESTS_COORDINATOR_STORE_FIXTURE_H

#include "coordinator/store/store.h"

extern char folder[32];     /* its directory; of each test another */
extern struct store *store; /* NULL before reopen */
extern struct error err;    /* job_fixture.c has it for all */

/* A checked fixture: an empty disk, and no store. */
void set_up(void);
void tear_down(void);

/* Close the store if it is open, and open it: what was not committed is gone. */
void reopen(void);

/* The stored job of this number, owned by the caller; NULL if there is none. */
struct job *job_back(uint64_t number);

/* A job with a value in every field; ranks are lent. */
struct job job_make(uint64_t number, struct job_rank *ranks, size_t rank_count);

#endif
