/* svg.h - drawings as SVG: a few shapes, and round steps for axes. Lengths are in pixels. */
#ifndef COORDINATOR_CLI_DRAWINGS_SVG_H
#define COORDINATOR_CLI_DRAWINGS_SVG_H

#include <stdio.h>

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
