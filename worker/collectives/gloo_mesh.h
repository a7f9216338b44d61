/* gloo_mesh.h - the ranks of an epoch, each connected with each by Gloo: transfers between two of
 * them, waiting with a limit, abort, and words for what went wrong. C++, behind the face of
 * gloo.cc.
 *
 * All groups share these connections; a transfer finds its counterpart by slot. The first failure
 * hangs up on all peers: whoever waits for a rank that has given up hears it at once, in whatever
 * group, and not after the limit. So a rank that is said to be gone may have lost another one.
 *
 * That a connection has ended Gloo tells whoever waits for a message that is not under way yet, or
 * begins one; of those under way it tells nobody. So every peer has a sentinel, a thread that waits
 * for a message that nobody sends. All are asked for before anything else is: what a peer has not
 * read when it leaves takes with it what it sent. */
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

using deadline = std::chrono::steady_clock::time_point;

/* What a call returns, and its sentence without "call in group ...: ". */
struct failure : std::runtime_error {
    failure(int code, const std::string &words) : std::runtime_error(words), rc(code)
    {
    }
    int rc;
};

/* One message on its way, to or from peer. The memory may be used again when this is gone. */
struct transfer {
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    int peer;
    bool incoming;
};

/* All functions throw failure. */
class mesh
{
  public:
    /* Blocks until all ranks are connected. */
    explicit mesh(const struct fabric_config &config);
    ~mesh();

    const int rank, count;
    const double timeout_s;
    void (*const awaits_cb)(int peer); /* may be null */

    deadline limit() const; /* of a call that begins now */
    transfer receive(int peer, uint64_t slot, void *destination, size_t bytes);
    transfer send(int peer, uint64_t slot, const void *source, size_t bytes);
    void await(const transfer &transfer, deadline limit);
    /* From any thread: calls that wait, and all later ones, fail with -ECANCELED. */
    void abort();

  private:
    class waiting;

    void begin();
    void post_sentinels();
    void watch(int peer);
    void end_watch();
    [[noreturn]] void fail(int peer, deadline limit, const std::string &cause);
    /* The lock is held: */
    void check() const;
    void wake();

    std::shared_ptr<gloo::rendezvous::Context> context;
    std::mutex lock;
    bool aborted = false;
    int ended_rc = 0; /* of the first failure */
    std::string ended_words;
    std::vector<waiting *> waits; /* of threads that wait for a transfer now */
    /* Gloo's words for why the connection to a peer has ended; none: it has not. */
    std::vector<std::optional<std::string>> ends;
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sentinels;
    std::vector<std::thread> watchers;
};

} // namespace gimbal

#endif
