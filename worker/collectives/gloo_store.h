/* gloo_store.h - where Gloo's ranks leave their addresses for each other: the epoch's rendezvous.
 * C++.
 */
#ifndef WORKER_COLLECTIVES_GLOO_STORE_H
#define WORKER_COLLECTIVES_GLOO_STORE_H

#include "worker/collectives/gloo_mesh.h"

#include <gloo/rendezvous/store.h>

namespace gimbal
{

/* What get() finds lacking after its limit it throws as a failure. */
class store : public gloo::rendezvous::Store
{
  public:
    store(const struct rendezvous *where, int count)
        : rendezvous(where), size_max(1024 + 256 * static_cast<size_t>(count))
    {
    }

    void set(const std::string &key, const std::vector<char> &data) override
    {
        struct error err;
        int rc = rendezvous->put(rendezvous->context, ("gloo/" + key).c_str(), data.data(),
                                 data.size(), &err);
        if (rc < 0)
            throw failure(rc, err.text);
    }

    std::vector<char> get(const std::string &key) override
    {
        struct error err;
        std::vector<char> data(size_max);
        size_t size = data.size();
        int rc =
            rendezvous->get(rendezvous->context, ("gloo/" + key).c_str(), data.data(), &size, &err);
        if (rc < 0)
            throw failure(rc, err.text);
        data.resize(size);
        return data;
    }

    void wait(const std::vector<std::string> &) override
    {
        /* get waits. */
    }

    void wait(const std::vector<std::string> &, const std::chrono::milliseconds &) override
    {
    }

  private:
    const struct rendezvous *const rendezvous;
    const size_t size_max; /* the addresses of one rank, one for every other */
};

} // namespace gimbal

#endif
