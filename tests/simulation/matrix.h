/* matrix.h - the fault matrix: one fault, done to one rank of one job in one phase of its life.
 *
 * A cell is a row and a column. Its worlds are those of scenario.c without any other fault: users
 * submit, pause, drain and cancel as ever; then all has to come to its end, with right ledgers and
 * nothing left behind. Some of the other worlds are struck as well, in a cell that is drawn. */
#ifndef TESTS_SIMULATION_MATRIX_H
#define TESTS_SIMULATION_MATRIX_H

#include <stddef.h>
#include <stdint.h>

struct executor;

enum phase {
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_REDUCE,
    PHASE_OPTIMIZER,
    PHASE_END,    /* after the last step: the evaluation, the checkpoint, the text */
    PHASE_REPLAN, /* of an epoch that follows on one that broke: before its ranks are ready */
    PHASES
};
const char *phase_name(enum phase phase);

/* Of a fault; NULL behind the last. */
const char *matrix_row_name(size_t row);

/* An executor enters a phase, in which it will be for so long. */
void matrix_enter(struct executor *executor, enum phase phase, uint64_t takes_ms);

/* A new world begins; its cell is in its options. */
void matrix_open(void);

#endif
