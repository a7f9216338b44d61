/* wire.h - reports as messages, between worker and coordinator. */
#ifndef COMMON_HARDWARE_WIRE_H
#define COMMON_HARDWARE_WIRE_H

#include "common/hardware/hardware.h"
#include "proto/cluster.pb-c.h"

/* The message is yours, for gimbal__hardware_report__free_unpacked(message, NULL). */
Gimbal__HardwareReport *hardware_report_to_wire(const struct hardware_report *report);
/* Checks what came; *out is yours, written on success only. -EINVAL as hardware_report_check. */
int hardware_report_from_wire(const Gimbal__HardwareReport *message, struct hardware_report **out,
                              struct error *err);

#endif
