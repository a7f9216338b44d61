/* drawings.h - what the commands of plans draw: a step, and plans beside each other. */
#ifndef COORDINATOR_CLI_COMMANDS_PLAN_DRAWINGS_H
#define COORDINATOR_CLI_COMMANDS_PLAN_DRAWINGS_H

#include "coordinator/planner/planner.h"

#include <stdio.h>

/* Draw a simulated step with a lane per stage: what its first rank computes above what it
 * transfers. Rank r of the plan runs on device r of the request. -EINVAL: it has too many ranks to
 * be lowered individually. Otherwise errors of lower() and simulate(). */
int lanes_draw(const struct planner_request *request, const struct plan *plan, FILE *out,
               struct error *err);
/* Draw the plans that were examined, step time over memory per device: those that are not dominated
 * are connected by a line, and the chosen one is marked by a ring. There must be at least one
 * candidate. */
void frontier_draw(const struct planner_result *result, FILE *out);

/* A few shapes as SVG, and round steps for axes. Lengths are in pixels. */
void svg_begin(FILE *out, int width, int height, const char *title);
void svg_end(FILE *out);
/* title (optional): tooltip. */
void svg_rect(FILE *out, double x, double y, double width, double height, const char *colour,
              const char *title);
void svg_circle(FILE *out, double x, double y, double radius, const char *colour,
                const char *title);
void svg_line(FILE *out, double x, double y, double x_to, double y_to, const char *colour);
/* anchor: "start", "middle" or "end". */
void svg_text(FILE *out, double x, double y, const char *anchor, const char *text);
/* The largest of 1, 2 and 5 times a power of ten that fits at least `parts` times into length. */
double svg_step(double length, int parts);

#endif
