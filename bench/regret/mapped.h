/* mapped.h - what Linux has mapped for a piece of memory, whatever it was asked for. */
#ifndef BENCH_REGRET_MAPPED_H
#define BENCH_REGRET_MAPPED_H

#include <stdint.h>

enum mapped { MAPPED_RESERVED, MAPPED_RESIDENT, MAPPED_FIGURES };

/* Adds the bytes from here to the end of what may be read and written, which is a page that
 * faults; and of these the ones that are in memory, in whole pages. */
void mapped_add(const char *start, uint64_t bytes[MAPPED_FIGURES]);

#endif
