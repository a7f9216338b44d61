/* reader.c - a pipe without a reader makes poll(2) report an error at its other end, whatever
 * events were asked for. */
#include "coordinator/cli/reader.h"

#include "coordinator/cli/exit.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct pollfd reader_poll(void)
{
    return (struct pollfd){.fd = STDOUT_FILENO, .events = 0};
}

int reader_code(const struct pollfd *polled)
{
    if (ferror(stdout))
        return EXIT_IO;
    return polled->revents & POLLERR ? EXIT_SIGNAL + SIGPIPE : EXIT_DONE;
}
