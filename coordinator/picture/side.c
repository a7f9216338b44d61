/* side.c - the rows of one side, and how much of them is present. */
#include "coordinator/picture/internal.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

void picture_side_begin(struct picture_side *side, size_t count)
{
    *side = (struct picture_side){.rows = xcalloc(count, sizeof *side->rows), .count = count};
}

void picture_side_finish(struct picture_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        boxes_finish(&side->rows[i].boxes);
    free(side->rows);
    *side = (struct picture_side){0};
}

void picture_side_settle(struct picture_side *side)
{
    size_t boxes = 0, known = 0;
    double sum = 0;
    for (size_t i = 0; i < side->count; i++) {
        struct picture_row *row = &side->rows[i];
        bool whole = row->instructions_left == 0 && side->step_s > 0;
        row->bubble = whole ? 1 - row->boxes.busy_s / side->step_s : NAN;
        sum += whole ? row->bubble : 0;
        known += whole;
        boxes_settle(&row->boxes, side->step_s / PICTURE_PARTS);
        row->told = boxes + row->boxes.count <= PICTURE_BOXES_MAX || boxes == 0;
        if (row->told)
            boxes += row->boxes.count;
        else
            boxes_finish(&row->boxes);
    }
    side->bubble = known > 0 ? sum / (double)known : NAN;
}
