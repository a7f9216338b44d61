/* mark.c - see mark.h. */
#include "worker/node/mark.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/config/folders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct mark {
    char *path, *text;
};

static void mark_free(struct mark *mark)
{
    free(mark->path);
    free(mark->text);
    free(mark);
}

static void *mark_write(void *data)
{
    struct mark *mark = data;
    struct error err;
    char *folder = xasprintf("%.*s", (int)(strrchr(mark->path, '/') - mark->path), mark->path);
    int rc = folder_make_mode(folder, 0777, &err);
    if (rc == 0)
        rc = file_write(mark->path, mark->text, 0666, &err);
    if (rc < 0)
        log_line(LOG_WARN, "jobs that the cluster saves cannot be saved by this node: %s",
                 err.text);
    free(folder);
    mark_free(mark);
    return NULL;
}

void mark_leave(const char *root, const char *node, const char *text)
{
    struct mark *mark = xcalloc(1, sizeof *mark);
    pthread_t thread;
    *mark = (struct mark){node_mark_path(root, node), xstrdup(text)};
    if (pthread_create(&thread, NULL, mark_write, mark) == 0)
        pthread_detach(thread);
    else
        mark_free(mark); /* the next start leaves one */
}
