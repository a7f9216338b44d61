/* accelerator.h - what a device offers that has memory of its own and works asynchronously: memory,
 * streams of work, and events in them, in CUDA's terms.
 *
 * Work is issued: a call returns before the work is done, and cannot fail. The work of one stream
 * is done in the order in which it was issued. Streams run concurrently, unless one awaits an event
 * of another. A thread issues to the stream that it has entered. Errors in a stream show when it is
 * finished; from then on its results are invalid.
 *
 * A process uses one such device: the one that was chosen, otherwise the first that it can see.
 * Only if several were chosen can a thread be bound to another of them. */
#ifndef WORKER_KERNELS_ACCELERATOR_H
#define WORKER_KERNELS_ACCELERATOR_H

#include "common/base/element.h"
#include "common/base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define REDUCE_MAX 64 /* sources of one reduce() */

struct device_stream;
struct device_event;
struct device_recording;

/* Functions that return int return 0 or a negative errno, with words in err. NULL stands for no
 * accelerator: a device that computes in host memory. */
struct accelerator {
    /* From here on the calling thread uses device `index` (from 0) of those that were chosen;
     * without this, the first. What it creates there may be used and destroyed by any thread that
     * is bound to the same device. -ENODEV: there are fewer. */
    int (*bind)(int index, struct error *err);
    /* The one that the calling thread asks, to bind another thread to it. */
    int (*bound)(void);
    /* Memory of the device, at a multiple of 256 bytes; -ENOMEM with the sizes. May wait for the
     * device: not during a step. */
    int (*reserve)(uint64_t bytes, void **out, struct error *err);
    void (*release)(void *memory); /* accepts NULL */
    /* How much more could be reserved right now. */
    int (*free_bytes)(uint64_t *bytes, struct error *err);
    /* The device memory that a computing stream holds for kernels of libraries, in addition to what
     * is reserved. It takes all of it when it is opened, and never more. */
    int (*libraries)(uint64_t *bytes, struct error *err);
    /* Allocate pinned host memory, which the device accesses by DMA. -ENOBUFS: that much cannot be
     * pinned. */
    int (*pin)(uint64_t bytes, void **out, struct error *err);
    void (*unpin)(void *memory); /* accepts NULL */
    /* Pin existing host memory until host_unregister, which must come before it is unmapped.
     * -ENOBUFS: that much cannot be pinned. */
    int (*host_register)(void *memory, uint64_t bytes, struct error *err);
    void (*host_unregister)(void *memory);

    /* Only a stream that computes can run kernels; others copy, add and exchange. -ENOMEM with the
     * sizes: there is no memory for libraries. */
    int (*stream_open)(struct device_stream **out, bool computes, struct error *err);
    /* Waits for the stream's work; no thread may have entered it. Accepts NULL. */
    void (*stream_close)(struct device_stream *stream);
    /* From here on the calling thread issues to this stream; NULL: to none. What a thread that has
     * entered a stream passes to other modules, such as collectives, is device memory. */
    void (*enter)(struct device_stream *stream);
    struct device_stream *(*inside)(
        void); /* the stream that the calling thread has entered; NULL: none */
    /* The calling thread's stream as the device's own libraries know it: a cudaStream_t. */
    void *(*native)(void);

    /* Copy in the calling thread's stream. Pinned host memory must not change until the stream has
     * got past the copy; other host memory may be reused at once. */
    void (*upload)(void *device, const void *host, uint64_t bytes);
    void (*download)(void *host, const void *device, uint64_t bytes);
    /* Copy within the device. */
    void (*move)(void *destination, const void *source, uint64_t bytes);
    /* In f32, whatever the element: destination[i] = sources[0][i] + sources[1][i] + ..., in this
     * order; or if `largest` their maximum, where a NaN wins. At most REDUCE_MAX sources.
     * destination may be one of them. */
    void (*reduce)(enum element element, void *destination, const void *const *sources, int count,
                   uint64_t elements, bool largest);
    /* Record the work that issue(context) gives to the calling thread's stream, instead of doing
     * it. It will be issued as a whole, in this order, and with these addresses. It must not copy
     * between host and device, wait, or set an event; and the same work must have been issued once
     * before, so that everything that is prepared on first use has been. -ENOTSUP, -EIO, -ENOMEM:
     * it cannot be recorded; nothing was issued, and the stream is unchanged. Allocates memory, so
     * only in the first steps. */
    int (*record)(void (*issue)(void *context), void *context, struct device_recording **out,
                  struct error *err);
    /* Issue a recording to the calling thread's stream. */
    void (*play)(struct device_recording *recording);
    /* Nothing that was played from it may be in progress. Accepts NULL. */
    void (*recording_destroy)(struct device_recording *recording);

    /* Wait until all work of the calling thread's stream is done. -EIO, -ENOMEM or -ENODEV: the
     * first error in it. */
    int (*finish)(struct error *err);

    /* A event is set after all work that the stream has been given so far. What awaits it starts
     * after the place where it was set last, or at once if it was never set. */
    int (*event_create)(struct device_event **out, struct error *err);
    void (*event_destroy)(struct device_event *event); /* accepts NULL */
    void (*event_set)(struct device_event *event);
    void (*event_await)(struct device_event *event);
    /* Whether all work is done after which the event was last set. From any thread. */
    bool (*event_passed)(const struct device_event *event);
};

#endif
