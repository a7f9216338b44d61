/* alike.h - devices of the same make are planned with one profile.
 *
 * Two measurements of the same device differ by some percent, and so do those of two devices of the
 * same make. A planner that believes these differences gives one of them a sample more than the
 * other, for nothing; and it examines every device apart, where like ones could be exchanged, so it
 * finds less and proves less. */
#ifndef COORDINATOR_PLANNING_ALIKE_H
#define COORDINATOR_PLANNING_ALIKE_H

#include "common/profile/profile.h"

/* The largest ratio between measurements of devices that count as alike: of seconds per flop, of
 * seconds per byte, and of those of links. The same cores, measured by workers that start together:
 * 1.06, 1.28 and 1.46. */
#define ALIKE_FLOPS 1.1
#define ALIKE_BYTES 1.3
#define ALIKE_LINK 2

/* Replace the profiles of devices that are alike by their mean. Devices are alike if they have the
 * same name, rates of the same operations, and times that differ by no more than the ratios above:
 * of computing, of moving, and of their links. Each is compared with the fastest of its group. A
 * device without a name was not measured, and stays as it is. */
void profiles_level(struct profile *profiles, const char *const *names, size_t count);
/* The first profile that is equal to this one, up to itself: planners tell like devices by the
 * address of their profile. */
const struct profile *profiles_first(const struct profile *profiles, size_t index);

#endif
