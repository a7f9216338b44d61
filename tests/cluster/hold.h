/* hold.h - trainings are held in their midst, before the eleventh step, until a test lets them go:
 * those of held_executor.c that start while there is a hold. */
#ifndef TESTS_CLUSTER_HOLD_H
#define TESTS_CLUSTER_HOLD_H

/* Prepare one, before the workers are started whose executors it is for; nothing is held yet. */
void hold_open(void);
void hold_close(void);
void hold_take(void);
void hold_let_go(void);

#endif
