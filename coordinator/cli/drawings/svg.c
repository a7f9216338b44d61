/* svg.c - writes escaped text elements that are readable on light and on dark ground. */
#include "coordinator/cli/drawings/svg.h"

#include <math.h>

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

void svg_begin(FILE *out, int width, int height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n<title>",
            width, height, width, height);
    put_text(out, title);
    fprintf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height);
}

void svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

static void put_title(FILE *out, const char *element, const char *title)
{
    if (!title) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    put_text(out, title);
    fprintf(out, "</title></%s>\n", element);
}

void svg_rect(FILE *out, double x, double y, double width, double height, const char *colour,
              const char *title)
{
    fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"", x, y,
            width, height, colour);
    put_title(out, "rect", title);
}

void svg_circle(FILE *out, double x, double y, double radius, const char *colour, const char *title)
{
    fprintf(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.1f\" fill=\"%s\"", x, y, radius, colour);
    put_title(out, "circle", title);
}

void svg_line(FILE *out, double x, double y, double x_to, double y_to, const char *colour)
{
    fprintf(out, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\"/>\n", x, y,
            x_to, y_to, colour);
}

void svg_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">", x, y, anchor);
    put_text(out, text);
    fputs("</text>\n", out);
}

double svg_step(double length, int parts)
{
    double unit = pow(10, floor(log10(length / parts)));
    double times = length / parts / unit;
    return unit * (times >= 5 ? 5 : times >= 2 ? 2 : 1);
}
