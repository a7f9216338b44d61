/* disk.h - a disk in memory under SQLite: it may fail, fill up, or lose its power.
 *
 * disk_install() makes it the place where all databases of the process lie. What was written is
 * read back at once, but only what was synced survives disk_lose_power(). Operations (writes,
 * syncs, truncations, deletions) are counted from 1, and one of them may be told to go wrong. */
#ifndef TESTS_SUPPORT_DISK_H
#define TESTS_SUPPORT_DISK_H

#include <stdbool.h>
#include <stddef.h>

enum disk_fault {
    DISK_WELL,
    DISK_WRITE_FAILS, /* and every one after it */
    DISK_WRITE_SHORT, /* half of it is written */
    DISK_FULL,        /* no file grows any more */
    DISK_SYNC_FAILS,  /* what should have been synced may be gone: it is */
    DISK_DIES,        /* nothing reaches it any more, and nobody is told */
    DISK_FAULTS
};

void disk_install(void);
/* Forget all files and faults. */
void disk_clear(void);
/* From the at-th operation from now on that the fault is about. */
void disk_plan(enum disk_fault fault, size_t at);
/* Whether the planned fault has shown. */
bool disk_has_failed(void);
/* All files become what was synced last; the disk is well again. Nothing may be open. */
void disk_lose_power(void);

#endif
