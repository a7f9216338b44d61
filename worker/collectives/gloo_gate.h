/* gloo_gate.h - holds up the thread with which Gloo moves data while others start transfers. Used
 * by gloo_mesh.cc.
 *
 * Starting a transfer locks its connection. When data arrives at a connection that is locked,
 * Gloo's thread does not wait for the lock, but polls until it gets it. If it has preempted the
 * thread that has the lock, on a core that they share, it polls to the end of its time slice: an
 * all-reduce of 128 KiB then took 3 ms instead of 0.2. Here it sleeps instead.
 *
 * Closing a socket takes until Gloo's thread polls again, and every connection closes the one that
 * it was to be accepted by: up to 10 ms each if nothing arrives, but less than 1 while somebody has
 * a pass. */
#ifndef WORKER_COLLECTIVES_GLOO_GATE_H
#define WORKER_COLLECTIVES_GLOO_GATE_H

#include <condition_variable>
#include <memory>
#include <mutex>

#include <gloo/transport/tcp/device.h>

namespace gimbal
{

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

} // namespace gimbal

#endif
