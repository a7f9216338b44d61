/* internal.h - what the files of picture/ share. */
#ifndef COORDINATOR_PICTURE_INTERNAL_H
#define COORDINATOR_PICTURE_INTERNAL_H

#include "coordinator/picture/picture.h"

/* So many rows, empty. */
void picture_side_begin(struct picture_side *side, size_t count);
/* All boxes and the length of the step are there: leave out what is too much, and see how much of
 * the step each rank does not compute. */
void picture_side_settle(struct picture_side *side);

#endif
