/* internal.h - shared by the files of picture/; not for others. */
#ifndef COORDINATOR_PICTURE_INTERNAL_H
#define COORDINATOR_PICTURE_INTERNAL_H

#include "coordinator/picture/picture.h"

/* Allocate `count` empty rows. */
void picture_side_begin(struct picture_side *side, size_t count);
/* All boxes and the length of the step are known: leave out what is too much, and find the share of
 * the step in which each rank does not compute. */
void picture_side_settle(struct picture_side *side);

#endif
