/* first.h - what the rest takes for granted of a device, asked of the real one before anything
 * else: a table of checks, each run in a process of its own.
 *
 * A check that fails, hangs, or leaves the device in disorder says so by itself, and the others go
 * on. Each prints figures, so that what was only estimated is known after a minute. */
#ifndef TESTS_GPU_FIRST_FIRST_H
#define TESTS_GPU_FIRST_FIRST_H

#include "worker/kernels/kernels.h"

struct first_check {
    const char *name;
    const char *assumption; /* a sentence, printed if it does not hold */
    int limit_s;
    const char *variable; /* "NAME=VALUE" in its environment; NULL: none */
    /* With no device (NULL): the check opens it. 0, or a negative errno. */
    int (*run)(const struct device *device, struct error *err);
    bool unopened;
};

/* The tables of the other files; each ends with a NULL name. */
extern const struct first_check first_memory[], first_beside[], first_streams[], first_kernels[],
    first_peers[];

/* The device that is asked: GIMBAL_TEST_DEVICE, or cuda. */
const char *first_name(void);
/* Print figures, in the line of the check; or what is worth a line of its own in the log. */
void first_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* 0, or -EIO with these words. */
int first_expect(bool holds, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- calls.c: a call of one operation, with operands on the device ---- */

struct first_call {
    const struct device *device;
    struct node node;
    struct kernel_call here, there; /* on the host, random, unless empty; on the device */
    void *memory;                   /* of the device */
    size_t bytes;
};

/* Operands and gradients of the operation; what it is not given is 0. If `empty`, all is 0, and
 * only on the device. The calling thread has entered a stream. */
int first_call_open(struct first_call *call, const struct device *device, const char *kind,
                    const struct sizes *sizes, enum element element, bool empty, struct error *err);
void first_call_close(struct first_call *call);
/* Fill all of the device's memory with numbers of bf16, for a call that is only timed. */
void first_call_fill(const struct first_call *call);
/* As the interpreter does before groups are formed; may overwrite the operands on the device. */
void first_call_prepare(const struct first_call *call, enum direction direction);
/* Issue all phases on the device. */
void first_call_run(const struct first_call *call, enum direction direction);
/* The same in plain C, on the host. */
void first_call_plain(const struct first_call *call, enum direction direction);
/* Fetch a result: the distance from plain C's, as a share of its norm. */
int first_call_distance(const struct first_call *call, bool gradient, int slot, double *out,
                        struct error *err);

#endif
