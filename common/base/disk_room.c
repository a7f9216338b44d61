/* disk_room.c - the time until which there is none. */
#include "common/base/disk_room.h"

#include "common/base/clock.h"

#include <errno.h>

static _Atomic double denied_until_s;

void disk_room_deny(uint32_t for_ms)
{
    denied_until_s = clock_now_s() + for_ms / 1e3;
}

uint32_t disk_room_denied_ms(void)
{
    double until_s = denied_until_s;
    double left_s =
        until_s > 0 ? until_s - clock_now_s() : 0; /* no clock is read without a drill */
    return left_s > 0 ? (uint32_t)(left_s * 1e3) + 1 : 0;
}

int disk_room_check(void)
{
    return disk_room_denied_ms() > 0 ? -ENOSPC : 0;
}
