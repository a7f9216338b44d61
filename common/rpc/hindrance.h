/* hindrance.h - a connection that is cut or slow for a time, for drills.
 *
 * Nothing is done to the connection itself: its client holds what it would send and what has
 * arrived. So nothing is lost or changed but by the deadlines of the calls, as on a network that is
 * out of order. */
#ifndef COMMON_RPC_HINDRANCE_H
#define COMMON_RPC_HINDRANCE_H

#include <stdint.h>

/* All zeroes: none. */
struct rpc_hindrance {
    uint32_t delay_ms; /* every message is late by this; 0: none passes before until_ms */
    uint64_t until_ms; /* of clock_ms() */
};

/* For how long to hold a message that is about to be sent, or has arrived; 0: let it pass. */
uint32_t rpc_hindrance_ms(const struct rpc_hindrance *hindrance, uint64_t now_ms);

#endif
