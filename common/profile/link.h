/* link.h - the speed of a link between devices: a transfer takes latency + bytes x seconds per
 * byte. */
#ifndef COMMON_PROFILE_LINK_H
#define COMMON_PROFILE_LINK_H

struct profile_link {
    double latency_s;        /* per message */
    double seconds_per_byte; /* of a long message */
};

#endif
