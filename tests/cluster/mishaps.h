/* mishaps.h - what goes wrong on the nodes of tests/cluster/trio.h, and how it is set right: the
 * rows of the fault matrix on real processes.
 *
 * The victim is a node's index. What a mishap needs to be set right it keeps itself, so there is
 * one at a time. */
#ifndef TESTS_CLUSTER_MISHAPS_H
#define TESTS_CLUSTER_MISHAPS_H

#include <stddef.h>

struct mishap {
    const char *name;
    void (*prepare)(int victim); /* before the job; NULL: nothing */
    void (*strike)(int victim);
    void (*mend)(int victim); /* behind the job; NULL: nothing */
};

extern const struct mishap mishaps[];
extern const size_t mishap_count;

#endif
