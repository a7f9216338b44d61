/* closing.c - replaces NNG's nng_stream_send() and nng_stream_recv().
 *
 * The transport calls them by their public names, and functions of these names in the program take
 * precedence over a library's. They do what NNG's do and add what its pull request 1636 adds: a
 * part that is refused ends with an error, like any other part that fails.
 *
 * The error is not NNG_ECLOSED, as it is there: if a connection fails with that while it is being
 * made, NNG takes it for the end of the listener, which then never accepts again. The same happens
 * when the other side hangs up before the answer of the handshake is written: that is EPIPE, which
 * NNG also maps to NNG_ECLOSED. So the C library's sendmsg() is replaced too, and returns
 * ECONNRESET instead. Without both, any stranger who hangs up at the right moment of a TLS
 * handshake stops a listener; by chance this takes about a dozen attempts.
 *
 * A part was refused if its result is NNG_ECANCELED on return. One that was accepted has result 0
 * while it runs, and later another one: closing a connection, which precedes anything that stops
 * it, ends its parts with NNG_ECLOSED. Nobody else changes the result in the meantime, because the
 * transport holds the connection's lock and the end of a part waits for that lock. */
#include "common/rpc/closing.h"

#include "common/rpc/handshakes.h"

#include <errno.h>
#include <nng/nng.h>

#if NNG_MAJOR_VERSION == 1 && NNG_MINOR_VERSION < 6

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

typedef void (*transfer_fn)(nng_stream *, nng_aio *);

typedef ssize_t (*sendmsg_fn)(int, const struct msghdr *, int);

static transfer_fn original_send, original_recv;
static sendmsg_fn original_sendmsg;
static bool is_in_place;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_originals(void)
{
    original_send = (transfer_fn)dlsym(RTLD_NEXT, "nng_stream_send");
    original_recv = (transfer_fn)dlsym(RTLD_NEXT, "nng_stream_recv");
    original_sendmsg = (sendmsg_fn)dlsym(RTLD_NEXT, "sendmsg");
    is_in_place = original_send && original_recv && original_sendmsg &&
                  dlsym(RTLD_DEFAULT, "sendmsg") == (void *)sendmsg &&
                  dlsym(RTLD_DEFAULT, "nng_stream_send") == (void *)nng_stream_send &&
                  dlsym(RTLD_DEFAULT, "nng_stream_recv") == (void *)nng_stream_recv;
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

int closing_check(struct error *err)
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

#else

int closing_check(struct error *err)
{
    (void)err;
    return 0;
}

#endif
