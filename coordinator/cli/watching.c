/* watching.c - print, wait a second for a signal, print again. */
#include "coordinator/cli/watching.h"

#include "coordinator/cli/exit.h"
#include "coordinator/cli/signals.h"

#include <poll.h>
#include <unistd.h>

#define PERIOD_MS 1000

/* On a terminal each printing replaces the one before. */
static int print_again(const struct invocation *invocation, watching_print_cb print,
                       struct client *client, struct error *err)
{
    if (invocation->common.output < OUTPUT_JSON && isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout);
    return print(invocation, client, err);
}

static int watch(const struct invocation *invocation, watching_print_cb print, int signals,
                 struct client *client, struct error *err)
{
    for (;;) {
        struct pollfd fd = {.fd = signals, .events = POLLIN};
        int code = print_again(invocation, print, client, err);
        if (code != EXIT_DONE)
            return code;
        poll(&fd, 1, PERIOD_MS);
        int signal = signals_take(signals);
        if (signal)
            return EXIT_SIGNAL + signal;
    }
}

int watching_run(const struct invocation *invocation, watching_print_cb print, struct error *err)
{
    struct client client = {0};
    int signals = -1;
    if (invocation->common.watch) {
        signals = signals_open(err); /* before the client has threads */
        if (signals < 0)
            return EXIT_INTERNAL;
    }
    int code = client_open(&invocation->common, &client, err);
    if (code == EXIT_DONE)
        code = signals < 0 ? print(invocation, &client, err)
                           : watch(invocation, print, signals, &client, err);
    client_close(&client);
    if (signals >= 0)
        close(signals);
    return code;
}
