/* gloo_store.h - Gloo's store interface on the epoch's rendezvous, where ranks leave their
 * addresses for each other. */
#ifndef WORKER_COLLECTIVES_GLOO_STORE_H
#define WORKER_COLLECTIVES_GLOO_STORE_H

#include "worker/collectives/gloo_mesh.h"

#include <gloo/rendezvous/store.h>

namespace gimbal
{

/* get() blocks until the key exists; errors are thrown as failure. */
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
        /* get() waits. */
    }

    void wait(const std::vector<std::string> &, const std::chrono::milliseconds &) override
    {
    }

  private:
    const struct rendezvous *const rendezvous;
    const size_t size_max; /* room for the addresses of a rank, one for each other rank */
};

} // namespace gimbal

#endif
