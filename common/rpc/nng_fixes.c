/* nng_fixes.c - replaces NNG's nng_stream_send() and nng_stream_recv(), and the C library's
 * sendmsg() and accept().
 *
 * The transport calls the first two by their public names, and functions of these names in the
 * program take precedence over a library's. They do what NNG's do and add what its pull request
 * 1636 adds: a part that is refused ends with an error, like any other part that fails.
 *
 * The error is not NNG_ECLOSED, as it is there: if a connection fails with that while it is being
 * made, NNG takes it for the end of the listener, which then never accepts again. The same happens
 * when the other side hangs up before the answer of the handshake is written: that is EPIPE, which
 * NNG also maps to NNG_ECLOSED. So sendmsg() returns ECONNRESET instead. Without both, any stranger
 * who hangs up at the right moment of a TLS handshake stops a listener; by chance this takes about
 * a dozen attempts.
 *
 * A part was refused if its result is NNG_ECANCELED on return. One that was accepted has result 0
 * while it runs, and later another one: closing a connection, which precedes anything that stops
 * it, ends its parts with NNG_ECLOSED. Nobody else changes the result in the meantime, because the
 * transport holds the connection's lock and the end of a part waits for that lock.
 *
 * For handshakes, every descriptor has the time at which it was accepted; 0 once the first byte has
 * been sent that is not part of a handshake. */
#include "common/rpc/nng_fixes.h"

#include <errno.h>
#include <nng/nng.h>

#if NNG_MAJOR_VERSION == 1 && NNG_MINOR_VERSION < 6

#include "common/base/clock.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#define DESCRIPTORS_MAX 65536
/* The first byte of a TLS handshake record, and of an alert (RFC 5246, 6.2.1). The first record of
 * a server that is neither is ChangeCipherSpec, which it sends after it has verified the client's
 * certificate and received the end of its handshake. Without TLS, NNG's first byte is 0. */
#define TLS_HANDSHAKE 0x16
#define TLS_ALERT 0x15

static _Atomic uint64_t accepted_ms[DESCRIPTORS_MAX];
static atomic_int greatest;

typedef void (*transfer_fn)(nng_stream *, nng_aio *);

typedef ssize_t (*sendmsg_fn)(int, const struct msghdr *, int);

typedef int (*accept_fn)(int, struct sockaddr *, socklen_t *);

static transfer_fn original_send, original_recv;
static sendmsg_fn original_sendmsg;
static accept_fn original_accept;
static bool is_in_place;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_originals(void)
{
    original_send = (transfer_fn)dlsym(RTLD_NEXT, "nng_stream_send");
    original_recv = (transfer_fn)dlsym(RTLD_NEXT, "nng_stream_recv");
    original_sendmsg = (sendmsg_fn)dlsym(RTLD_NEXT, "sendmsg");
    original_accept = (accept_fn)dlsym(RTLD_NEXT, "accept");
    is_in_place = original_send && original_recv && original_sendmsg &&
                  dlsym(RTLD_DEFAULT, "sendmsg") == (void *)sendmsg &&
                  dlsym(RTLD_DEFAULT, "nng_stream_send") == (void *)nng_stream_send &&
                  dlsym(RTLD_DEFAULT, "nng_stream_recv") == (void *)nng_stream_recv;
}

int accept(int listener, struct sockaddr *address, socklen_t *size)
{
    pthread_once(&once, find_originals);
    int fd = original_accept(listener, address, size);
    if (fd < 0 || fd >= DESCRIPTORS_MAX)
        return fd;
    atomic_store(&accepted_ms[fd], clock_ms());
    for (int most = atomic_load(&greatest); fd > most;)
        if (atomic_compare_exchange_weak(&greatest, &most, fd))
            break;
    return fd;
}

/* These bytes are being sent. Forgets the connection if they are not part of a handshake. */
static void handshakes_sent(int fd, const struct msghdr *message)
{
    if (fd < 0 || fd >= DESCRIPTORS_MAX || atomic_load(&accepted_ms[fd]) == 0 ||
        message->msg_iovlen == 0 || message->msg_iov[0].iov_len == 0)
        return;
    unsigned char first = *(const unsigned char *)message->msg_iov[0].iov_base;
    if (first != TLS_HANDSHAKE && first != TLS_ALERT)
        atomic_store(&accepted_ms[fd], 0);
}

static void end_if_refused(nng_aio *aio)
{
    if (nng_aio_result(aio) == NNG_ECANCELED)
        nng_aio_finish(aio, NNG_ECONNSHUT);
}

void nng_stream_send(nng_stream *stream, nng_aio *aio)
{
    pthread_once(&once, find_originals);
    original_send(stream, aio);
    end_if_refused(aio);
}

void nng_stream_recv(nng_stream *stream, nng_aio *aio)
{
    pthread_once(&once, find_originals);
    original_recv(stream, aio);
    end_if_refused(aio);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    pthread_once(&once, find_originals);
    handshakes_sent(fd, message);
    ssize_t sent = original_sendmsg(fd, message, flags);
    if (sent < 0 && errno == EPIPE)
        errno = ECONNRESET;
    return sent;
}

int nng_fixes_check(struct error *err)
{
    pthread_once(&once, find_originals);
    if (is_in_place)
        return 0;
    return error_set(err, -ELIBACC,
                     "NNG %s hangs when a connection closes on which something arrives, and this "
                     "program was not linked so that this is mended: link NNG as a shared library, "
                     "and do not hide the program's symbols",
                     nng_version());
}

/* Is the descriptor a socket at one of these ports? It may have been closed and reused since. */
static bool handshake_is_at(int fd, const uint16_t *ports, size_t count)
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
        if (since_ms == 0 || now_ms - since_ms < older_ms || !handshake_is_at(fd, ports, count))
            continue;
        /* Only if its handshake has not ended, or the descriptor been reused, just now. */
        if (atomic_compare_exchange_strong(&accepted_ms[fd], &since_ms, 0) &&
            shutdown(fd, SHUT_RDWR) == 0)
            ended++;
    }
    return ended;
}

#else

int nng_fixes_check(struct error *err)
{
    (void)err;
    return 0;
}

size_t handshakes_end(const uint16_t *ports, size_t count, uint64_t older_ms)
{
    (void)ports, (void)count, (void)older_ms;
    return 0;
}

#endif
