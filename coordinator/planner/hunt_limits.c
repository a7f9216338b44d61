/* hunt_limits.c - how much is looked at: in general, while somebody waits, and all of it. */
#include "coordinator/planner/hunt.h"

#include <limits.h>
#include <math.h>

const struct hunt_limits hunt_limits_standard = {.labels = 480,
                                                 .pipeline_labels = 40,
                                                 .choices = 60,
                                                 .pairs = 8,
                                                 .joins = 3e6,
                                                 .near = 0.0225,
                                                 .points = 20000,
                                                 .scouts = 1600,
                                                 .parts = 4000,
                                                 .parts_most = 130000,
                                                 .patience = 16,
                                                 .wide_devices = 8,
                                                 .plans = 20000,
                                                 .simulations = 48,
                                                 .slack = 0.03};
const struct hunt_limits hunt_limits_quick = {.labels = 60,
                                              .pipeline_labels = 20,
                                              .choices = 40,
                                              .pairs = 4,
                                              .joins = 2e5,
                                              .near = 0.05,
                                              .points = 20000,
                                              .scouts = 600,
                                              .parts = 20,
                                              .parts_least = 400,
                                              .parts_most = 2200,
                                              .patience = 16,
                                              .wide_devices = 4,
                                              .plans = 2000,
                                              .simulations = 8,
                                              .slack = 0.01};
const struct hunt_limits hunt_limits_none = {.labels = SIZE_MAX,
                                             .pipeline_labels = SIZE_MAX,
                                             .choices = SIZE_MAX,
                                             .pairs = SIZE_MAX,
                                             .joins = INFINITY,
                                             .points = INFINITY,
                                             .scouts = SIZE_MAX,
                                             .parts = SIZE_MAX,
                                             .wide_devices = INT_MAX,
                                             .plans = INFINITY,
                                             .simulations = SIZE_MAX,
                                             .slack = 0.1};
