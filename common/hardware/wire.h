/* wire.h - converts reports to and from protobuf messages between worker and coordinator. */
#ifndef COMMON_HARDWARE_WIRE_H
#define COMMON_HARDWARE_WIRE_H

#include "common/hardware/hardware.h"
#include "proto/cluster.pb-c.h"

/* To be freed with gimbal__hardware_report__free_unpacked(message, NULL). */
Gimbal__HardwareReport *hardware_report_to_wire(const struct hardware_report *report);
/* Convert and check a message. *out is set on success only and owned by the caller. -EINVAL as
 * hardware_report_check(). */
int hardware_report_from_wire(const Gimbal__HardwareReport *message, struct hardware_report **out,
                              struct error *err);

#endif
