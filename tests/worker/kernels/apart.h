/* apart.h - calls of any device on memory of the host: where the device has memory of its own, what
 * a call names is brought there before it, and back behind it.
 *
 * Each array lies between words that no call may write, and that are no numbers if they are read;
 * and not at a round address. */
#ifndef TESTS_WORKER_KERNELS_APART_H
#define TESTS_WORKER_KERNELS_APART_H

#include "worker/kernels/kernels.h"

/* The device of that row of the table; NULL when this machine lacks it, which is printed. With
 * GIMBAL_TEST_DEVICE only that one, as row 0; then it has to be there. */
const struct device *apart_device(int index);

struct apart;

struct apart *apart_begin(const struct device *device);
/* What is brought from here on lies at round addresses. */
void apart_round(struct apart *apart);
/* Where the device has this array until the end: of one array always the same place. */
void *apart_bring(struct apart *apart, void *host, size_t bytes);
/* The arrays are as the device left them. */
void apart_end(struct apart *apart);

#endif
