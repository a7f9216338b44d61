/* cpuset.h - sets of cores, as text and for threads. */
#ifndef WORKER_HARDWARE_CPUSET_H
#define WORKER_HARDWARE_CPUSET_H

#include "common/base/error.h"
#include "common/hardware/hardware.h"

#include <sched.h>

#define CPUSETS_MAX HARDWARE_PIECES_MAX

/* Parse "0-3,8". -EINVAL with the text. */
int cpuset_parse(const char *text, size_t size, cpu_set_t *out, struct error *err);
/* Parse "0-1;2-3". Returns the number of sets, or -EINVAL. */
int cpuset_parse_list(const char *text, cpu_set_t out[CPUSETS_MAX], struct error *err);
/* Divide the process's cores into `count` sets of neighbours. With fewer cores than sets, each set
 * is one core, in turn. */
void cpuset_share(int count, cpu_set_t out[CPUSETS_MAX]);
/* The sets of a list, or, if that is NULL, `count` equal shares of the cores that this process may
 * use. With a list, count 0 accepts any number of sets. Returns the number of sets; -EINVAL, in the
 * words of the flag --devices. */
int cpuset_devices(const char *list, int count, cpu_set_t out[CPUSETS_MAX], struct error *err);
/* Bind the calling thread to a set; *threads is how many threads of its own it may use. -errno. */
int cpuset_bind(const cpu_set_t *set, int *threads, struct error *err);

#endif
