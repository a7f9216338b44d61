/* checks.c - the table of checks, in the order in which they run. */
#include "worker/doctor/machine.h"

const struct doctor_check *const machine_checks[] = {
    &check_system,  &check_state,       &check_devices, &check_cores,  &check_memory,
    &check_limits,  &check_threads,     &check_bf16,    &check_nvidia, &check_certificates,
    &check_address, &check_coordinator, NULL,
};
