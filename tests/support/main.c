/* main.c - of a program that holds suites: it runs the one that is named, or the only one. */
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct suite_row *rows;

void suite_enlist(struct suite_row *row)
{
    row->next = rows;
    rows = row;
}

int main(int argc, char **argv)
{
    if (argc < 2 && rows && !rows->next)
        return rows->run();
    for (struct suite_row *row = rows; row && argc == 2; row = row->next)
        if (strcmp(row->name, argv[1]) == 0)
            return row->run();
    fprintf(stderr, "usage: %s SUITE, one of:", argv[0]);
    for (struct suite_row *row = rows; row; row = row->next)
        fprintf(stderr, " %s", row->name);
    fputs("\n", stderr);
    return EXIT_FAILURE;
}
