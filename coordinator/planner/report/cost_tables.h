/* cost_tables.h - the costs of one point's parts as JSON tables: of blocks by their strategies, of
 * what joins two blocks by the roles of both, of blocks that share a weight by the strategies of
 * both. What is in a table is said at the top of dump.c. */
#ifndef COORDINATOR_PLANNER_REPORT_COST_TABLES_H
#define COORDINATOR_PLANNER_REPORT_COST_TABLES_H

#include "coordinator/planner/space/space.h"

#include <jansson.h>

struct cost_tables {
    struct costs *costs; /* lent, as the point */
    const struct space_point *point;
    const struct site **sites; /* per stage */
    struct cost_column **columns;
    size_t column_count, column_capacity;
    size_t written; /* costs so far */
    json_t *strategies, *joints, *crossings;
};

void cost_tables_init(struct cost_tables *tables, struct costs *costs,
                      const struct space_point *point);
void cost_tables_finish(struct cost_tables *tables);

/* The names of a cost's members, and a cost: both are the caller's. ranks: that the site tells
 * apart. */
json_t *cost_tables_names(void);
json_t *cost_tables_cost(struct cost_tables *tables, const struct part_cost *cost, int ranks);

/* The block on the stage; what joins it to the next one there; its crossing to the next one, which
 * begins the next stage. What is in strategies, joints or crossings already is not written again.
 * Errors as of costs_block. */
int cost_tables_block(struct cost_tables *tables, int stage, int block, struct error *err);
int cost_tables_joint(struct cost_tables *tables, int stage, int block, struct error *err);
int cost_tables_crossing(struct cost_tables *tables, int stage, int block, struct error *err);
/* Sets tied_last and tied_first of the point's object, where the last block uses a weight of the
 * first one. Errors as of costs_block. */
int cost_tables_ties(struct cost_tables *tables, json_t *point, struct error *err);

#endif
