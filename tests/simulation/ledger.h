/* ledger.h - what training has done to a state, as a number: every sample of every step, once and
 * in order.
 *
 * Each rank puts the samples of its cut into a share; the shares of a step are added, and the sum
 * goes into the state's ledger together with the step. So a state has the right ledger for its step
 * only if no sample was lost or taken twice and no step was left out or done twice, over all plans
 * and epochs that it went through. */
#ifndef TESTS_SIMULATION_LEDGER_H
#define TESTS_SIMULATION_LEDGER_H

#include <stdint.h>

#define LEDGER_START 1

/* Of rank `rank` of `ranks`, for the step that is counted from 0. */
uint64_t ledger_share(uint64_t step, uint32_t rank, uint32_t ranks);
/* With the sum of all shares of that step. */
uint64_t ledger_add(uint64_t ledger, uint64_t step, uint64_t shares);
/* That a state has to have after so many steps. */
uint64_t ledger_right(uint64_t steps);

#endif
