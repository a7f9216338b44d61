/* inherited.h - the numbers of the descriptors that an executor is started with.
 *
 * They stand apart from child.h for benches and tests that look at them from outside, in /proc,
 * where the command line's `struct child` is another one. */
#ifndef WORKER_NODE_INHERITED_H
#define WORKER_NODE_INHERITED_H

enum {
    INHERITED_CHANNEL = 3,
    INHERITED_TRAIL,
    INHERITED_STATE, /* the file with its state, if it has one */
};

#endif
