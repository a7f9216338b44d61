/* mapped.h - how much memory Linux really has mapped for a region. */
#ifndef BENCH_REGRET_MAPPED_H
#define BENCH_REGRET_MAPPED_H

#include <stdint.h>

enum mapped { MAPPED_RESERVED, MAPPED_RESIDENT, MAPPED_FIGURES };

/* Add the bytes from `start` to the end of its writable mapping, behind which is a page that
 * faults; and how many of them are resident, in whole pages. */
void mapped_add(const char *start, uint64_t bytes[MAPPED_FIGURES]);

#endif
