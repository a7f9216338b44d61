/* telemetry.h - sends what ranks measure as telemetry records.
 *
 * Each function is an entry of struct reporter (telemetry_link: of struct links) whose context is
 * the session. They may be called from any rank's thread. */
#ifndef WORKER_EXECUTOR_TELEMETRY_H
#define WORKER_EXECUTOR_TELEMETRY_H

#include "common/profile/profile.h"
#include "worker/trainer/trainer.h"

void telemetry_step(void *context, int rank, uint64_t number, const struct step_result *result,
                    double seconds);
void telemetry_evaluation(void *context, int rank, uint64_t number, double loss, double targets);
void telemetry_sample(void *context, int rank, uint64_t number, const uint8_t *text, size_t size);
void telemetry_times(void *context, int rank, const char *block_type, const char *instruction,
                     uint64_t steps, double seconds, double predicted_s);
void telemetry_link(void *context, int rank, int peer, bool in_devices,
                    const struct profile_link *link);
void telemetry_trace(void *context, int rank, uint64_t number, const struct stamp *stamps,
                     size_t count, size_t total);

#endif
