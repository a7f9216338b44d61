/* watching.c - prints, waits a second for a signal, and prints again if something has changed. */
#include "coordinator/cli/following/watching.h"

#include "common/rpc/clock.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/reader.h"
#include "coordinator/cli/signals.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERIOD_MS 1000

/* On a terminal each printing replaces the one before. */
static void show(const struct invocation *invocation, const char *text)
{
    if (invocation->common.output < OUTPUT_JSON && isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout);
    fputs(text, stdout);
    fflush(stdout);
}

/* *last is what was printed before, and is replaced by what is printed. */
static int print_changed(const struct invocation *invocation, watching_print_cb print,
                         struct client *client, char **last, struct error *err)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return error_set(err, EXIT_INTERNAL, "no memory to print into");
    int code = print(invocation, client, out, err);
    fclose(out);
    if (code == EXIT_DONE && (!*last || strcmp(*last, text) != 0))
        show(invocation, text);
    free(*last);
    *last = text;
    return code;
}

static int watch(const struct invocation *invocation, watching_print_cb print, int signals,
                 struct client *client, struct error *err)
{
    double timeout_s = invocation->common.timeout_s;
    uint64_t until_ms = timeout_s > 0 ? rpc_clock_ms() + (uint64_t)(timeout_s * 1000) : UINT64_MAX;
    char *last = NULL;
    int code;
    while ((code = print_changed(invocation, print, client, &last, err)) == EXIT_DONE) {
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, reader_poll()};
        uint32_t left_ms = rpc_clock_left_ms(until_ms, rpc_clock_ms());
        poll(fds, 2, left_ms < PERIOD_MS ? (int)left_ms : PERIOD_MS);
        int signal = signals_take(signals);
        code = signal ? EXIT_SIGNAL + signal : reader_code(&fds[1]);
        if (code == EXIT_DONE && rpc_clock_ms() >= until_ms)
            code = error_set(err, EXIT_TIMEOUT, "gave up after %g s", timeout_s);
        if (code != EXIT_DONE)
            break;
    }
    free(last);
    return code;
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
        code = signals < 0 ? print(invocation, &client, stdout, err)
                           : watch(invocation, print, signals, &client, err);
    client_close(&client);
    if (signals >= 0)
        close(signals);
    return code;
}
