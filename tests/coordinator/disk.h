/* disk.h - a disk in memory for SQLite, which can be made to fail, to fill up, or to lose power.
 *
 * After disk_install() all databases of the process lie on it. Data can be read as soon as it is
 * written, but only what was synced survives disk_lose_power(). disk_plan() makes an operation (a
 * write, sync, truncation or deletion) fail. */
#ifndef TESTS_COORDINATOR_DISK_H
#define TESTS_COORDINATOR_DISK_H

#include <stdbool.h>
#include <stddef.h>

enum disk_fault {
    DISK_WELL,
    DISK_WRITE_FAILS, /* writes and truncations fail */
    DISK_WRITE_SHORT, /* writes fail after half of the data is written */
    DISK_FULL,        /* files cannot grow */
    DISK_SYNC_FAILS,  /* syncs fail, and their data does not survive a loss of power */
    DISK_DIES,        /* nothing that is written reaches the disk, but all calls succeed */
    DISK_FAULTS
};

/* Make it SQLite's default VFS; once per process. */
void disk_install(void);
/* Forget all files and faults. */
void disk_clear(void);
/* Make the fault show at the at-th operation, counted from 1 from now on, of those that it
 * concerns, and at all such operations after it. */
void disk_plan(enum disk_fault fault, size_t at);
/* Whether the planned fault has occurred. */
bool disk_has_failed(void);
/* Revert all files to what was synced last; the disk then works again. No database may be open. */
void disk_lose_power(void);

#endif
