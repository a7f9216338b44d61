/* cost_tables.h - the costs of one point's parts as JSON tables: of blocks by their strategies, of
 * joints between two blocks by the roles of both, and of blocks that share a weight by the
 * strategies of both. The tables are described at the top of dump.c. */
#ifndef COORDINATOR_PLANNER_REPORT_COST_TABLES_H
#define COORDINATOR_PLANNER_REPORT_COST_TABLES_H

#include "coordinator/planner/space/space.h"

#include <jansson.h>

struct cost_tables {
    struct costs *costs; /* lent, as is the point */
    const struct space_point *point;
    const struct site **sites; /* per stage */
    struct cost_column **columns;
    size_t column_count, column_capacity;
    size_t written; /* costs written so far */
    json_t *strategies, *joints, *crossings;
};

void cost_tables_init(struct cost_tables *tables, struct costs *costs,
                      const struct space_point *point);
void cost_tables_finish(struct cost_tables *tables);

/* The names of a cost's members, and a cost; the caller owns both. ranks: how many the site tells
 * apart. */
json_t *cost_tables_names(void);
json_t *cost_tables_cost(struct cost_tables *tables, const struct part_cost *cost, int ranks);

/* Write the costs of a block on a stage, of its joint to the next block there, and of its crossing
 * to the next block, which begins the next stage. What strategies, joints or crossings contain
 * already is not written again. Errors as of costs_block(). */
int cost_tables_block(struct cost_tables *tables, int stage, int block, struct error *err);
int cost_tables_joint(struct cost_tables *tables, int stage, int block, struct error *err);
int cost_tables_crossing(struct cost_tables *tables, int stage, int block, struct error *err);
/* Set tied_last and tied_first in the point's object; only for models whose last block uses a
 * weight of the first. Errors as of costs_block(). */
int cost_tables_ties(struct cost_tables *tables, json_t *point, struct error *err);

#endif
