/* offer.h - works out what this node offers: shares of its cores, or devices that have memory of
 * their own, and how fast they are. */
#ifndef WORKER_NODE_OFFER_H
#define WORKER_NODE_OFFER_H

#include "common/hardware/hardware.h"
#include "worker/hardware/network.h"
#include "worker/node/settings.h"

/* Check settings without looking for devices: whether the named cores exist, and the kind of device
 * is known. -EINVAL. */
int offer_check_settings(const struct worker_settings *settings, struct error *err);
/* What would be offered, without measurements and address. Errors as of offer_make; the caller owns
 * *out. */
int offer_look(const struct worker_settings *settings, const char *shim, const char *executor,
               int stop_fd, struct hardware_report **out, struct error *err);
/* The source address of packets to a coordinator, given by its address. -EINVAL; -EHOSTUNREACH. */
int offer_source(const char *coordinator, char out[NETWORK_ADDRESS_SIZE], struct error *err);
/* Set the address at which ranks of other nodes reach this node's ranks, and the number of network
 * cards. -EINVAL, -EHOSTUNREACH. */
int offer_address(const struct worker_settings *settings, struct hardware_report *report,
                  struct error *err);
/* Log in one line what would be offered. Measures nothing and contacts nobody. Errors as of
 * offer_make. */
int offer_check(const struct worker_settings *settings, const char *shim, const char *executor,
                int stop_fd, struct error *err);

/* Examine and measure this machine, by executors that this waits for (seconds). The caller owns
 * *out. -EINVAL: the settings do not fit the machine; -ENODEV: it has no such device, or measuring
 * failed; -EINTR: stop_fd became readable. */
int offer_make(const struct worker_settings *settings, const char *shim, const char *executor,
               int stop_fd, struct hardware_report **out, struct error *err);

#endif
