/* internal.h - shared by meeting, filling and copying in this folder only. */
#ifndef WORKER_MOVE_INTERNAL_H
#define WORKER_MOVE_INTERNAL_H

#include "worker/move/decide.h"

/* Tags of messages; they lie above those of programs, which are numbers of tensors. */
#define MOVE_TAG_FILL UINT32_C(0xffffff00) /* plus the part */
#define MOVE_TAG_COPY UINT32_C(0xffffff10)

struct move {
    struct move_config config;
    struct fabric_group *group;
    struct offer *offers;
    int rank, ranks;
    struct parts parts;
    struct move_decision decision;
};

#endif
