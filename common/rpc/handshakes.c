/* handshakes.c - keeps for every descriptor the time at which it was accepted; 0 once its handshake
 * is done. */
#include "common/rpc/handshakes.h"

#include "common/base/clock.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define DESCRIPTORS_MAX 65536
/* The first byte of a TLS handshake record, and of an alert (RFC 5246, 6.2.1). The first record of
 * a server that is neither is ChangeCipherSpec, which it sends after it has verified the client's
 * certificate and received the end of its handshake. Without TLS, NNG's first byte is 0. */
#define TLS_HANDSHAKE 0x16
#define TLS_ALERT 0x15

static _Atomic uint64_t accepted_ms[DESCRIPTORS_MAX];
static atomic_int greatest;

typedef int (*accept_fn)(int, struct sockaddr *, socklen_t *);
static accept_fn original;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_original(void)
{
    original = (accept_fn)dlsym(RTLD_NEXT, "accept");
}

int accept(int listener, struct sockaddr *address, socklen_t *size)
{
    pthread_once(&once, find_original);
    int fd = original(listener, address, size);
    if (fd < 0 || fd >= DESCRIPTORS_MAX)
        return fd;
    atomic_store(&accepted_ms[fd], clock_ms());
    for (int most = atomic_load(&greatest); fd > most;)
        if (atomic_compare_exchange_weak(&greatest, &most, fd))
            break;
    return fd;
}

void handshakes_sent(int fd, const struct msghdr *message)
{
    if (fd < 0 || fd >= DESCRIPTORS_MAX || atomic_load(&accepted_ms[fd]) == 0 ||
        message->msg_iovlen == 0 || message->msg_iov[0].iov_len == 0)
        return;
    unsigned char first = *(const unsigned char *)message->msg_iov[0].iov_base;
    if (first != TLS_HANDSHAKE && first != TLS_ALERT)
        atomic_store(&accepted_ms[fd], 0);
}

/* Is the descriptor a socket at one of these ports? It may have been closed and reused since. */
static bool is_at(int fd, const uint16_t *ports, size_t count)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    uint16_t port = 0;
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return false;
    if (address.ss_family == AF_INET)
        port = ntohs(((const struct sockaddr_in *)&address)->sin_port);
    else if (address.ss_family == AF_INET6)
        port = ntohs(((const struct sockaddr_in6 *)&address)->sin6_port);
    for (size_t i = 0; i < count; i++)
        if (ports[i] == port)
            return true;
    return false;
}

size_t handshakes_end(const uint16_t *ports, size_t count, uint64_t older_ms)
{
    size_t ended = 0;
    uint64_t now_ms = clock_ms();
    for (int fd = 0, most = atomic_load(&greatest); fd <= most; fd++) {
        uint64_t since_ms = atomic_load(&accepted_ms[fd]);
        if (since_ms == 0 || now_ms - since_ms < older_ms || !is_at(fd, ports, count))
            continue;
        /* Only if its handshake has not ended, or the descriptor been reused, just now. */
        if (atomic_compare_exchange_strong(&accepted_ms[fd], &since_ms, 0) &&
            shutdown(fd, SHUT_RDWR) == 0)
            ended++;
    }
    return ended;
}
