/* gloo_gate.cc - a descriptor among those that Gloo's thread polls. Its handler waits for the
 * passes to be given back, but not for long, because whoever closes a connection waits until
 * that thread polls again. */
#include "worker/collectives/gloo_gate.h"

#include <cerrno>
#include <chrono>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace gimbal
{

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

} // namespace gimbal
