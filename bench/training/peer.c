/* peer.c - talks to the PyTorch process through two pipes: a line of request, a line of answer. */
#include "bench/training/peer.h"

#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer {
    pid_t pid;
    FILE *to, *from;
    char release[64];
};

static void run(const struct peer_config *config, const int in[2], const int out[2])
{
    const struct job_model *model = config->model;
    const char *python = getenv("GIMBAL_BENCH_PYTHON"), *script = getenv("GIMBAL_BENCH_TORCH");
    const char *folders = getenv("GIMBAL_BENCH_LIBRARIES");
    char numbers[7][24];
    const int64_t values[] = {model->layers, model->hidden, model->heads, model->ffn,
                              model->seq,    model->vocab,  config->batch};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        snprintf(numbers[i], sizeof numbers[i], "%" PRId64, values[i]);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    /* It has libraries of its own, but may need a folder for the driver's. */
    if (folders)
        setenv("LD_LIBRARY_PATH", folders, 1);
    else
        unsetenv("LD_LIBRARY_PATH");
    python = python ? python : "python3";
    execlp(python, python, script ? script : TORCH_TRAIN, config->where,
           config->element == ELEMENT_BF16 ? "bf16" : "f32", config->mode, model->family,
           numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
           NULL);
    perror(python);
    _exit(127);
}

static int read_ready(struct peer *peer, struct error *err)
{
    char line[128];
    if (fgets(line, sizeof line, peer->from) && sscanf(line, "ready %63s", peer->release) == 1)
        return 0;
    return error_set(err, -ENOENT, "PyTorch does not train here: see above");
}

int peer_open(const struct peer_config *config, struct peer **out, struct error *err)
{
    struct peer *peer = xcalloc(1, sizeof *peer);
    int in[2], from[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0) /* another peer would keep them */
        abort();
    peer->pid = fork();
    if (peer->pid == 0)
        run(config, in, from);
    close(in[0]);
    close(from[1]);
    peer->to = fdopen(in[1], "w");
    peer->from = fdopen(from[0], "r");
    int rc = read_ready(peer, err);
    if (rc < 0) {
        peer_close(peer);
        return rc;
    }
    *out = peer;
    return 0;
}

const char *peer_release(const struct peer *peer)
{
    return peer->release;
}

double peer_seconds(struct peer *peer, int steps)
{
    char line[64];
    fprintf(peer->to, "%d\n", steps);
    if (fflush(peer->to) == 0 && fgets(line, sizeof line, peer->from))
        return strtod(line, NULL);
    fprintf(stderr, "PyTorch has ended in the middle of a measurement\n");
    exit(EXIT_FAILURE);
}

void peer_close(struct peer *peer)
{
    if (!peer)
        return;
    fclose(peer->to);
    fclose(peer->from);
    waitpid(peer->pid, NULL, 0);
    free(peer);
}
