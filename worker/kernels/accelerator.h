/* accelerator.h - what a device offers that has memory of its own and works on while the host goes
 * on: memory, lanes of work, and marks in them.
 *
 * Work is issued: a call returns before the work is done, and cannot fail. The work of one lane is
 * done in the order it was issued in; lanes run beside each other, unless one awaits a mark of
 * another. A thread issues to the lane that it has entered. What goes wrong in a lane shows when
 * it is finished, and from then on nothing in it counts.
 *
 * A process has one such device: the one that was chosen, else the first that it can see. Only
 * where several were chosen, a thread may be bound to another of them. */
#ifndef WORKER_KERNELS_ACCELERATOR_H
#define WORKER_KERNELS_ACCELERATOR_H

#include "common/base/element.h"
#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define REDUCE_MAX 64

struct lane;
struct mark;
struct tape;

struct accelerator {
    /* All that the calling thread asks for from here on is of this one of the devices that were
     * chosen, from 0; without it of the first. Whatever it has made there may be used, and given
     * back, by this thread and by others of that device. -ENODEV: there are fewer. */
    int (*bind)(int index, struct error *err);
    /* The one that the calling thread asks, to bind another thread to it. */
    int (*bound)(void);
    /* Memory of the device, at a multiple of 256 bytes; -ENOMEM with the sizes. May wait for the
     * device: not during a step. */
    int (*reserve)(uint64_t bytes, void **out, struct error *err);
    void (*release)(void *memory); /* accepts NULL */
    /* How much more could be reserved now. */
    int (*room)(uint64_t *bytes, struct error *err);
    /* What a lane that computes holds for kernels of libraries, beside what is reserved: all of
     * it from its opening on, and never more. */
    int (*libraries)(uint64_t *bytes, struct error *err);
    /* Memory of the host that the device reads and writes by itself; -ENOBUFS: so much cannot be
     * pinned. */
    int (*pin)(uint64_t bytes, void **out, struct error *err);
    void (*unpin)(void *memory); /* accepts NULL */
    /* The same of memory that there is already, until host_unregister: before it is unmapped.
     * -ENOBUFS: so much cannot be pinned. */
    int (*host_register)(void *memory, uint64_t bytes, struct error *err);
    void (*host_unregister)(void *memory);

    /* Only one that computes runs kernels; others copy, add and exchange. -ENOMEM with the sizes:
     * there is no memory for libraries. */
    int (*lane_open)(struct lane **out, bool computes, struct error *err);
    /* Accepts NULL. Waits for the lane's work; no thread may be in it. */
    void (*lane_close)(struct lane *lane);
    /* The calling thread issues to this lane from here on; NULL: to none. What a thread in a lane
     * calls of others, such as collectives, is about the device's memory. */
    void (*enter)(struct lane *lane);
    struct lane *(*inside)(void); /* the one that it has entered */
    /* The calling thread's lane as the device's own libraries know it: a cudaStream_t. */
    void *(*native)(void);

    /* In the calling thread's lane. Pinned memory stays as it is until the lane has come past;
     * other memory of the host may be used again at once. */
    void (*upload)(void *device, const void *host, uint64_t bytes);
    void (*download)(void *host, const void *device, uint64_t bytes);
    /* Inside the device. */
    void (*move)(void *destination, const void *source, uint64_t bytes);
    /* In f32, whatever the element: destination[i] = sources[0][i] + sources[1][i] + ..., in this
     * order, or the largest of them, where a NaN wins; destination may be one of the sources. At
     * most REDUCE_MAX sources. */
    void (*reduce)(enum element element, void *destination, const void *const *sources, int count,
                   uint64_t elements, bool largest);
    /* Work that `issue` gives to the calling thread's lane, with context, is not done but kept, to
     * be issued as one: in the order that it has, at the addresses that it names. It moves nothing
     * between host and device, waits for nothing and sets no mark. The like of it has been issued
     * before, so that whatever is prepared once has been. -ENOTSUP, -EIO, -ENOMEM: it cannot be
     * kept; nothing was issued, and the lane is as it was. Not during a step, but for the first
     * few: it reserves memory. */
    int (*record)(void (*issue)(void *context), void *context, struct tape **out,
                  struct error *err);
    /* In the calling thread's lane. */
    void (*play)(struct tape *tape);
    /* Accepts NULL. Where it was played nothing of it is under way. */
    void (*tape_destroy)(struct tape *tape);

    /* Waits until all work of the lane is done. -EIO, -ENOMEM or -ENODEV with what went wrong in
     * it first, in words. */
    int (*finish)(struct error *err);

    /* A mark is set behind all that its lane was given so far; what awaits it begins behind the
     * place where it was set last, or at once if it never was. */
    int (*mark_create)(struct mark **out, struct error *err);
    void (*mark_destroy)(struct mark *mark); /* accepts NULL */
    void (*mark_set)(struct mark *mark);
    void (*mark_await)(struct mark *mark);
    /* From any thread: whether all is done that it was set behind last. */
    bool (*mark_passed)(const struct mark *mark);
};

#endif
