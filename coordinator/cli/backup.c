/* backup.c - fetches the coordinator's store as a file, and hands such a file back to it. */
#include "coordinator/cli/backup.h"

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/rpc/message.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fetch the next piece and append it to `out`. *more: there are more pieces. An enum exit_code. */
static int fetch_piece(struct client *client, Gimbal__BackupRequest *request, FILE *out, bool *more,
                       struct error *err)
{
    ProtobufCMessage *message;
    int code = client_call(client, COORDINATOR_BACKUP, &request->base, 0, &message, err);
    if (code != EXIT_DONE)
        return code;
    const Gimbal__BackupReply *reply = (const Gimbal__BackupReply *)message;
    size_t length = reply->piece.len;
    if (length == 0 || length > reply->size_bytes - request->offset)
        code = error_set(err, EXIT_INTERNAL, "the coordinator sent a piece of %zu bytes", length);
    else if (fwrite(reply->piece.data, 1, length, out) != length)
        code = error_set(err, EXIT_IO, "%s", strerror(errno));
    request->copy = reply->copy;
    request->offset += length;
    *more = request->offset < reply->size_bytes;
    message_free(message);
    return code;
}

static int fetch(const struct common *common, FILE *out, uint64_t *size, struct error *err)
{
    struct client client = {0};
    Gimbal__BackupRequest request = GIMBAL__BACKUP_REQUEST__INIT;
    int code = client_open(common, &client, err);
    for (bool more = true; code == EXIT_DONE && more;)
        code = fetch_piece(&client, &request, out, &more, err);
    client_close(&client);
    *size = request.offset;
    if (code == EXIT_DONE && (fflush(out) != 0 || fsync(fileno(out)) < 0))
        code = error_set(err, EXIT_IO, "%s", strerror(errno));
    return code;
}

int backup_fetch(const struct common *common, const char *path, struct error *err)
{
    char *part = xasprintf("%s.part", path), text[32];
    uint64_t size = 0;
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), code;
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        code = error_set(err, exit_of_errno(-errno), "'%s': %s", part, strerror(errno));
        free(part);
        return code;
    }
    code = fetch(common, out, &size, err);
    fclose(out);
    if (code == EXIT_DONE && (rename(part, path) < 0 || folder_sync_above(path) < 0))
        code = error_set(err, EXIT_IO, "%s", strerror(errno));
    if (code == EXIT_IO)
        error_prefix(err, 0, "'%s'", path);
    if (code != EXIT_DONE)
        unlink(part);
    else if (!common->quiet)
        fprintf(stderr, "%s: %s\n", path, units_print_bytes(text, sizeof text, (double)size));
    free(part);
    return code;
}

int backup_restore(char *const *arguments, int count, struct error *err)
{
    char *program;
    int rc = sibling_path("gimbal-coordinator", &program, err);
    if (rc < 0)
        return exit_of_errno(rc);
    char **argv = xcalloc((size_t)count + 3, sizeof *argv);
    argv[0] = program;
    argv[1] = (char *)"--restore";
    memcpy(argv + 2, arguments, (size_t)count * sizeof *argv);
    execv(program, argv);
    int code = error_set(err, EXIT_FAILED, "%s: %s", program, strerror(errno));
    free(argv);
    free(program);
    return code;
}
