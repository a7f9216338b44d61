/* link.h - how fast data goes from one device to another. */
#ifndef COMMON_PROFILE_LINK_H
#define COMMON_PROFILE_LINK_H

struct profile_link {
    double latency_s;        /* of one message */
    double seconds_per_byte; /* of a long one */
};

#endif
