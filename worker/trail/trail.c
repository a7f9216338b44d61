/* trail.c - a memfd with a ring per track, written by one thread and read by another process.
 *
 * A call is written before it is counted, and the ring is longer than the part of it that is read.
 * If the count moves on by the difference while it is read, the reader reads again. A process that
 * has lost control of its memory may have written anything here: its worker must survive that. */
#include "worker/trail/trail.h"

#include "common/base/memory.h"
#include "common/base/text.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING 64
#define READ_MAX (RING / 2) /* calls that are read; as many more may begin meanwhile */

struct track {
    _Atomic uint64_t entered, left; /* numbers of calls */
    _Atomic uint64_t left_ms;
    _Atomic int peer;
    struct trail_call ring[RING];
};

struct page {
    struct track tracks[TRAIL_TRACKS];
};

struct trail {
    struct page *page;
};

static _Thread_local struct track *here; /* the track of the call that this thread is in */

static int trail_map(int fd, struct trail **out, struct error *err)
{
    struct page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return error_set(err, -errno, "map the trail of a rank: %s", strerror(errno));
    *out = xcalloc(1, sizeof **out);
    (*out)->page = page;
    return 0;
}

int trail_create(struct trail **out, int *fd, struct error *err)
{
    int made = memfd_create("gimbal-trail", MFD_CLOEXEC);
    if (made < 0 || ftruncate(made, sizeof(struct page)) < 0) {
        int rc = error_set(err, -errno, "memory for the trail of a rank: %s", strerror(errno));
        if (made >= 0)
            close(made);
        return rc;
    }
    int rc = trail_map(made, out, err);
    if (rc < 0)
        close(made);
    else
        *fd = made;
    return rc;
}

int trail_open(int fd, struct trail **out, struct error *err)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size != (off_t)sizeof(struct page))
        return error_set(err, -EINVAL, "descriptor %d is no trail of this release", fd);
    return trail_map(fd, out, err);
}

void trail_close(struct trail *trail)
{
    if (!trail)
        return;
    munmap(trail->page, sizeof *trail->page);
    free(trail);
}

void trail_enter(struct trail *trail, unsigned track, const struct trail_call *call)
{
    if (!trail)
        return;
    here = &trail->page->tracks[track];
    uint64_t number = atomic_load_explicit(&here->entered, memory_order_relaxed);
    here->ring[number % RING] = *call;
    atomic_store_explicit(&here->peer, -1, memory_order_relaxed);
    atomic_store_explicit(&here->entered, number + 1, memory_order_release);
}

void trail_leave(struct trail *trail, unsigned track, uint64_t now_ms)
{
    if (!trail)
        return;
    struct track *of = &trail->page->tracks[track];
    uint64_t entered = atomic_load_explicit(&of->entered, memory_order_relaxed);
    atomic_store_explicit(&of->left_ms, now_ms, memory_order_relaxed);
    atomic_store_explicit(&of->left, entered, memory_order_release);
    here = NULL;
}

void trail_await(int peer)
{
    if (here)
        atomic_store_explicit(&here->peer, peer, memory_order_relaxed);
}

/* ---- reading ---- */

static void add_past(const struct trail_call *call, struct trail_position *out)
{
    if (call->kind == TRAIL_EXCHANGES && out->past_count < TRAIL_PAST_MAX / TRAIL_TRACKS)
        out->past[out->past_count++] = (struct trail_past){call->group, call->number};
}

/* A track that moves on while it is read is read again, but not forever: one that moves is not held
 * up. */
static bool read_track(const struct track *track, struct trail_position *out)
{
    for (int attempt = 0; attempt < 3; attempt++) {
        uint64_t entered = atomic_load_explicit(&track->entered, memory_order_acquire);
        uint64_t left = atomic_load_explicit(&track->left, memory_order_acquire);
        if (entered == 0)
            return false;
        *out = (struct trail_position){.inside = left < entered};
        out->call = track->ring[(entered - 1) % RING];
        out->peer = out->inside ? atomic_load_explicit(&track->peer, memory_order_relaxed) : -1;
        if (!out->inside)
            out->call.entered_ms = atomic_load_explicit(&track->left_ms, memory_order_relaxed);
        for (uint64_t back = 1; back <= entered && back <= READ_MAX; back++)
            add_past(&track->ring[(entered - back) % RING], out);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&track->entered, memory_order_relaxed) - entered < RING - READ_MAX)
            return true;
    }
    return false;
}

/* Whether a track is in a call that is not a wait for yet another one. */
static bool is_at_work(const struct trail_position *track)
{
    return track->inside && track->call.kind != TRAIL_AWAITS;
}

/* The rank is where its first track is, unless that track waits for another one. */
bool trail_read(const struct trail *trail, struct trail_position *out)
{
    struct trail_position tracks[TRAIL_TRACKS];
    bool known[TRAIL_TRACKS];
    for (int i = 0; i < TRAIL_TRACKS; i++)
        known[i] = read_track(&trail->page->tracks[i], &tracks[i]);
    if (!known[0])
        return false;
    bool waits = tracks[0].inside && tracks[0].call.kind == TRAIL_AWAITS;
    unsigned awaited = tracks[0].call.awaited < TRAIL_TRACKS ? tracks[0].call.awaited : 0;
    unsigned at = waits && known[awaited] && is_at_work(&tracks[awaited]) ? awaited : 0;
    *out = tracks[at];
    out->call.name[sizeof out->call.name - 1] = '\0';
    text_tame(out->call.name);
    for (unsigned other = 0; other < TRAIL_TRACKS; other++)
        for (size_t i = 0; other != at && known[other] && i < tracks[other].past_count; i++)
            out->past[out->past_count++] = tracks[other].past[i];
    return true;
}
