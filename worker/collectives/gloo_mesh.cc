/* gloo_mesh.cc - connects through the rendezvous, and transfers over Gloo's unbound buffers. */
#include "worker/collectives/gloo_mesh.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

#include <gloo/common/error.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

namespace gimbal
{

/* Holds up the thread with which Gloo moves data while others start transfers.
 *
 * Starting a transfer locks its connection. When data arrives at a connection that is locked,
 * Gloo's thread does not wait for the lock, but polls until it gets it. If it has preempted the
 * thread that has the lock, on a core that they share, it polls to the end of its time slice: an
 * all-reduce of 128 KiB then took 3 ms instead of 0.2. Here it sleeps instead.
 *
 * Closing a socket takes until Gloo's thread polls again, and every connection closes the one that
 * it was to be accepted by: up to 10 ms each if nothing arrives, but less than 1 while somebody has
 * a pass.
 *
 * It is a descriptor among those that Gloo's thread polls. Its handler waits for the passes to be
 * given back, but not for long, because whoever closes a connection waits until that thread polls
 * again. */
class gate : private gloo::transport::tcp::Handler
{
  public:
    /* Throws std::system_error if there is no descriptor for it. */
    explicit gate(std::shared_ptr<gloo::transport::tcp::Device> of);
    ~gate() override;

    /* Held by a thread that starts transfers, or opens or closes connections. */
    class pass
    {
      public:
        explicit pass(gate &through) : owner(through)
        {
            owner.enter();
        }
        ~pass()
        {
            owner.leave();
        }
        pass(const pass &) = delete;
        pass &operator=(const pass &) = delete;

      private:
        gate &owner;
    };

  private:
    void enter();
    void leave();
    void handleEvents(int events) override;

    std::shared_ptr<gloo::transport::tcp::Device> device;
    int event; /* readable while passes are held */
    std::mutex lock;
    std::condition_variable open;
    int passes = 0;
};

static constexpr std::chrono::microseconds patience(200);

gate::gate(std::shared_ptr<gloo::transport::tcp::Device> of)
    : device(std::move(of)), event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    if (event < 0)
        throw std::system_error(errno, std::generic_category());
    device->registerDescriptor(event, EPOLLIN, this);
}

/* With its last owner a device ends its thread. */
gate::~gate()
{
    if (device.use_count() > 1)
        device->unregisterDescriptor(event, this);
    enter();
    device.reset();
    close(event);
}

void gate::enter()
{
    std::lock_guard<std::mutex> guard(lock);
    if (passes++ == 0)
        eventfd_write(event, 1);
}

void gate::leave()
{
    eventfd_t count;
    std::lock_guard<std::mutex> guard(lock);
    if (--passes > 0)
        return;
    eventfd_read(event, &count);
    open.notify_one();
}

void gate::handleEvents(int)
{
    std::unique_lock<std::mutex> guard(lock);
    open.wait_for(guard, patience, [this] { return passes == 0; });
}

/* Gloo's store interface on the epoch's rendezvous, where ranks leave their addresses for each
 * other. get() blocks until the key exists; errors are thrown as failure. */
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

namespace
{

/* Gloo writes to sockets without MSG_NOSIGNAL, so a peer that dies would kill this process too. */
void ignore_sigpipe()
{
    struct sigaction action;
    if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL)
        std::signal(SIGPIPE, SIG_IGN);
}

std::shared_ptr<gloo::transport::Device> device_create(const char *address)
{
    try {
        gloo::transport::tcp::attr attributes(address);
        return gloo::transport::tcp::CreateDevice(attributes);
    } catch (const std::exception &cause) {
        throw failure(-EADDRNOTAVAIL,
                      std::string("cannot bind to '") + address + "': " + cause.what());
    }
}

std::chrono::milliseconds milliseconds(double seconds)
{
    return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

std::string seconds_text(double seconds)
{
    char text[32];
    snprintf(text, sizeof text, "%g s", seconds);
    return text;
}

/* Gloo's message, without the source line in front of it. */
std::string words(const std::string &text)
{
    size_t end = text.find("] ");
    return text[0] == '[' && end != std::string::npos ? text.substr(end + 2) : text;
}

/* How long a transfer is waited for after its connection has ended: by then it is done, or never
 * will be. */
constexpr std::chrono::milliseconds last_moment(1);
constexpr std::chrono::milliseconds for_ever(std::chrono::hours(24 * 365));
constexpr uint64_t nobodys_slot = ~uint64_t(0);

const char other_timeout[] = "Application timeout caused pair closure";

} // namespace

mesh::mesh(const struct fabric_config &config)
    : rank(config.rank), count(config.count), timeout_s(config.timeout_s),
      awaits_cb(config.awaits_cb), ends(static_cast<size_t>(config.count))
{
    const char *address = config.interface ? config.interface : "127.0.0.1";
    ignore_sigpipe();
    auto device = device_create(address);
    try {
        entry =
            std::make_unique<gate>(std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device));
    } catch (const std::system_error &cause) {
        throw failure(-cause.code().value(), "no descriptor to hold up Gloo's thread by");
    }
    context = std::make_shared<gloo::rendezvous::Context>(rank, count);
    context->setTimeout(milliseconds(timeout_s));
    store addresses(config.rendezvous, count);
    deadline end = limit();
    try {
        gate::pass pass(*entry);
        context->connectFullMesh(addresses, device);
    } catch (const failure &) {
        throw;
    } catch (const std::exception &cause) {
        throw failure(std::chrono::steady_clock::now() >= end ? -ETIMEDOUT : -ECONNRESET,
                      "cannot connect all " + std::to_string(count) +
                          " ranks: " + words(cause.what()));
    }
    post_sentinels();
    try {
        for (int peer = 0; peer < count; peer++)
            if (peer != rank && !ends[peer])
                watchers.emplace_back(&mesh::watch, this, peer);
    } catch (const std::system_error &cause) {
        end_watch();
        throw failure(-cause.code().value(),
                      "no thread for each of " + std::to_string(count - 1) + " peers");
    }
}

mesh::~mesh()
{
    end_watch();
    gate::pass pass(*entry);
    sentinels.clear();
    context.reset();
}

void mesh::end_watch()
{
    for (const auto &sentinel : sentinels)
        sentinel->abortWaitRecv();
    for (std::thread &watcher : watchers)
        watcher.join();
}

deadline mesh::limit() const
{
    return std::chrono::steady_clock::now() + milliseconds(timeout_s);
}

void mesh::check() const
{
    if (aborted)
        throw failure(-ECANCELED, "the exchange was aborted");
    if (ended_rc < 0)
        throw failure(ended_rc, "given up after an earlier failure: " + ended_words);
}

/* A wait for a transfer, registered so that abort and watchers can wake it. */
class mesh::waiting
{
  public:
    waiting(mesh &waited, const transfer &transfer) : mine(transfer), owner(waited)
    {
        std::lock_guard<std::mutex> guard(owner.lock);
        owner.check();
        owner.waits.push_back(this);
        late = owner.ends[mine.peer].has_value();
        if (owner.awaits_cb)
            owner.awaits_cb(mine.peer);
    }

    ~waiting()
    {
        if (owner.awaits_cb)
            owner.awaits_cb(-1);
        std::lock_guard<std::mutex> guard(owner.lock);
        owner.waits.erase(std::find(owner.waits.begin(), owner.waits.end(), this));
    }

    void wake() const
    {
        if (mine.incoming)
            mine.buffer->abortWaitRecv();
        else
            mine.buffer->abortWaitSend();
    }

    bool wait(std::chrono::milliseconds left) const
    {
        return mine.incoming ? mine.buffer->waitRecv(nullptr, left)
                             : mine.buffer->waitSend(nullptr, left);
    }

    /* Why its connection has ended or, if it has not, why the wait has. */
    std::string why(const std::exception &cause) const
    {
        std::lock_guard<std::mutex> guard(owner.lock);
        return owner.ends[mine.peer].value_or(cause.what());
    }

    const transfer &mine;
    bool late; /* the connection had ended before the wait began */

  private:
    mesh &owner;
};

void mesh::wake()
{
    for (const waiting *each : waits)
        each->wake();
}

void mesh::post_sentinels()
{
    for (int peer = 0; peer < count; peer++) {
        sentinels.push_back(context->createUnboundBuffer(nullptr, 0));
        try {
            if (peer != rank)
                sentinels.back()->recv(peer, nobodys_slot, 0, 0);
        } catch (const std::exception &cause) {
            ends[peer] = cause.what();
        }
    }
}

/* Sleep until the connection to the peer ends, or this mesh is destroyed. */
void mesh::watch(int peer)
{
    try {
        sentinels[peer]->waitRecv(nullptr, for_ever);
    } catch (const std::exception &cause) {
        std::lock_guard<std::mutex> guard(lock);
        ends[peer] = cause.what();
        for (const waiting *each : waits)
            if (each->mine.peer == peer)
                each->wake();
    }
}

void mesh::fail(int peer, deadline limit, const std::string &cause)
{
    std::string who = "rank " + std::to_string(peer);
    failure end(-ECONNRESET, who + " is gone: " + words(cause));
    if (std::chrono::steady_clock::now() >= limit)
        end = failure(-ETIMEDOUT, who + " has not arrived within " + seconds_text(timeout_s));
    else if (cause.find(other_timeout) != std::string::npos)
        end = failure(-ETIMEDOUT, "given up, because another call has timed out");
    {
        std::lock_guard<std::mutex> guard(lock);
        if (ended_rc == 0) {
            ended_rc = end.rc;
            ended_words = end.what();
        }
        wake();
    }
    gate::pass pass(*entry);
    context->closeConnections();
    throw end;
}

void mesh::begin()
{
    std::lock_guard<std::mutex> guard(lock);
    check();
}

transfer mesh::receive(int peer, uint64_t slot, void *destination, size_t bytes)
{
    return {context->createUnboundBuffer(destination, bytes), peer, slot, true};
}

/* Gloo has only one kind of buffer; it only reads from this one. */
transfer mesh::send(int peer, uint64_t slot, const void *source, size_t bytes)
{
    return {context->createUnboundBuffer(const_cast<void *>(source), bytes), peer, slot, false};
}

void mesh::start(const transfer *transfers, size_t count)
{
    size_t at = 0;
    begin();
    try {
        gate::pass pass(*entry);
        for (; at < count; at++)
            if (transfers[at].incoming)
                transfers[at].buffer->recv(transfers[at].peer, transfers[at].slot);
            else
                transfers[at].buffer->send(transfers[at].peer, transfers[at].slot);
    } catch (const std::exception &cause) {
        fail(transfers[at].peer, deadline::max(), cause.what());
    }
}

/* Wait for a transfer. Once its connection has ended, it is not waited for any longer. */
void mesh::await(const transfer &transfer, deadline limit)
{
    waiting here(*this, transfer);
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(limit - std::chrono::steady_clock::now());
    left = std::max(left, std::chrono::milliseconds(0));
    if (here.late)
        left = std::min(left, last_moment);
    try {
        while (!here.wait(left)) {
            begin(); /* throws the reason for waking, unless it was the end of the connection */
            left = last_moment;
        }
    } catch (const failure &) {
        throw;
    } catch (const std::exception &cause) {
        fail(transfer.peer, limit, here.why(cause));
    }
}

void mesh::abort()
{
    std::lock_guard<std::mutex> guard(lock);
    aborted = true;
    wake();
}

} // namespace gimbal
