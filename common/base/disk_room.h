/* disk_room.h - whether anything more fits on a disk, as far as this process is concerned: a drill
 * may deny it for a time. What writes files asks before each write and treats -ENOSPC as if write()
 * had returned it, so that what follows is what would follow on a full disk. Files that only exist
 * in memory do not ask. Thread-safe. */
#ifndef COMMON_BASE_DISK_ROOM_H
#define COMMON_BASE_DISK_ROOM_H

#include <stdint.h>

/* From now on and for this long there is no room, in place of what was said before. */
void disk_room_deny(uint32_t for_ms);
/* For how long there is still none. */
uint32_t disk_room_denied_ms(void);
/* 0 or -ENOSPC. */
int disk_room_check(void);

#endif
