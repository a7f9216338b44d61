/* gloo_mesh.h - a full mesh of Gloo connections between the ranks of an epoch: transfers between
 * two ranks, waits with a limit, abort, and words for errors. Used by gloo.cc.
 *
 * All groups share these connections; a transfer finds its counterpart by its slot. The first
 * failure closes the connections to all peers, so that whoever waits for a rank that has given up
 * hears of it at once, in any group, and not after the limit. A rank that is reported as gone may
 * therefore itself have lost another.
 *
 * Gloo reports the end of a connection to those who wait for a message that has not started yet,
 * and to those who start one, but not to those whose message is in progress. So there is a sentinel
 * for each peer: a thread that waits for a message that is never sent. Sentinels are posted before
 * anything else, because what a peer has not read when it leaves takes with it what it sent. */
#ifndef WORKER_COLLECTIVES_GLOO_MESH_H
#define WORKER_COLLECTIVES_GLOO_MESH_H

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gloo/rendezvous/context.h>
#include <gloo/transport/unbound_buffer.h>

extern "C" {
#include "worker/collectives/collective.h"
}

namespace gimbal
{

class gate;

using deadline = std::chrono::steady_clock::time_point;

/* What a call returns, and its message without "call in group ...: ". */
struct failure : std::runtime_error {
    failure(int code, const std::string &words) : std::runtime_error(words), rc(code)
    {
    }
    int rc;
};

/* A message to or from peer, which start() sets in motion. Destroying it releases the caller's
 * memory. */
struct transfer {
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    int peer;
    uint64_t slot;
    bool incoming;
};

/* All functions throw failure. They may be called from several threads. */
class mesh
{
  public:
    /* Blocks until all ranks are connected. */
    explicit mesh(const struct fabric_config &config);
    ~mesh();

    const int rank, count;
    const double timeout_s;
    void (*const awaits_cb)(int peer); /* may be null */

    deadline limit() const; /* deadline of a call that begins now */
    transfer receive(int peer, uint64_t slot, void *destination, size_t bytes);
    transfer send(int peer, uint64_t slot, const void *source, size_t bytes);
    void start(const transfer *transfers, size_t count);
    void await(const transfer &transfer, deadline limit);
    /* Make waiting and later calls fail with -ECANCELED. From any thread. */
    void abort();

  private:
    class waiting;

    void begin();
    void post_sentinels();
    void watch(int peer);
    void end_watch();
    [[noreturn]] void fail(int peer, deadline limit, const std::string &cause);
    /* With the lock held: */
    void check() const;
    void wake();

    std::unique_ptr<gate> entry;
    std::shared_ptr<gloo::rendezvous::Context> context;
    std::mutex lock;
    bool aborted = false;
    int ended_rc = 0; /* errno of the first failure */
    std::string ended_words;
    std::vector<waiting *> waits; /* of threads that are waiting for a transfer */
    /* Gloo's message on why the connection to a peer has ended; none: it has not. */
    std::vector<std::optional<std::string>> ends;
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sentinels;
    std::vector<std::thread> watchers;
};

} // namespace gimbal

#endif
