/* mapped.c - finds the mapping in /proc/self/maps, and asks mincore(2) which pages are resident. */
#include "bench/regret/mapped.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The end of the mapping that has this address, or the address where none may be written. */
static uintptr_t end_of(uintptr_t at)
{
    char line[512], flags[8];
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t found = at;
    while (maps && found == at && fgets(line, sizeof line, maps)) {
        char *rest;
        uintptr_t low = strtoul(line, &rest, 16);
        uintptr_t high = strtoul(rest + 1, &rest, 16);
        if (sscanf(rest, "%7s", flags) == 1 && flags[1] == 'w' && low <= at && at < high)
            found = high;
    }
    if (maps)
        fclose(maps);
    return found;
}

void mapped_add(const char *start, uint64_t bytes[MAPPED_FIGURES])
{
    uintptr_t at = (uintptr_t)start, end = end_of(at);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), lead = at % page;
    size_t pages = (end - at + lead + page - 1) / page;
    unsigned char *there = xcalloc(pages + 1, 1);
    if (pages > 0 && mincore((char *)start - lead, pages * page, there) < 0)
        perror("mincore");
    bytes[MAPPED_RESERVED] += end - at;
    for (size_t i = 0; i < pages; i++)
        bytes[MAPPED_RESIDENT] += there[i] & 1 ? page : 0;
    free(there);
}
