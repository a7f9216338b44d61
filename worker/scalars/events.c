/* events.c - frames records and fills in the messages of proto/tensorboard.proto. */
#include "worker/scalars/events.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "proto/tensorboard.pb-c.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "events.out.tfevents."
#define VERSION "brain.Event:2"
#define SCALARS_MAX 16
#define POLYNOMIAL 0x82f63b78u /* of Castagnoli, reflected */
#define MASK_DELTA 0xa282ead8u /* crc32c.h of TensorFlow */

struct events {
    FILE *file;
    char *path;
};

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        table[i] = crc;
    }
}

uint32_t events_crc(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint32_t crc = UINT32_MAX;
    pthread_once(&table_once, table_make);
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ at[i]) & 0xff];
    return ~crc;
}

uint32_t events_masked_crc(const void *bytes, size_t size)
{
    uint32_t crc = events_crc(bytes, size);
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}

static void put_little(unsigned char *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

/* Length, its checksum, the record, its checksum; the file remembers what went wrong. */
static void events_put(struct events *events, uint64_t step, Tensorboard__Event *event)
{
    unsigned char head[12], tail[4];
    event->wall_time = 1e-3 * (double)clock_unix_ms();
    event->step = (int64_t)step;
    size_t size = tensorboard__event__get_packed_size(event);
    unsigned char *record = xcalloc(1, size);
    tensorboard__event__pack(event, record);
    put_little(head, size, 8);
    put_little(head + 8, events_masked_crc(head, 8), 4);
    put_little(tail, events_masked_crc(record, size), 4);
    fwrite(head, 1, sizeof head, events->file);
    fwrite(record, 1, size, events->file);
    fwrite(tail, 1, sizeof tail, events->file);
    free(record);
}

static void events_put_beginning(struct events *events, uint64_t from)
{
    Tensorboard__Event version = TENSORBOARD__EVENT__INIT, start = TENSORBOARD__EVENT__INIT;
    Tensorboard__SessionLog log = TENSORBOARD__SESSION_LOG__INIT;
    version.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
    version.file_version = (char *)VERSION;
    events_put(events, 0, &version);
    log.status = TENSORBOARD__SESSION_LOG__STATUS__START;
    start.what_case = TENSORBOARD__EVENT__WHAT_SESSION_LOG;
    start.session_log = &log;
    events_put(events, from, &start);
}

/* The second that the newest event file of the folder has in its name; 0: there is none. */
static uint64_t events_newest(const char *folder)
{
    DIR *directory = opendir(folder);
    uint64_t newest = 0, second;
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (sscanf(entry->d_name, PREFIX "%" SCNu64, &second) == 1 && second > newest)
            newest = second;
    if (directory)
        closedir(directory);
    return newest;
}

int events_open(const char *folder, uint64_t epoch, uint64_t from, struct events **out,
                struct error *err)
{
    int rc = folder_make_mode(folder, 0777, err);
    if (rc < 0)
        return rc;
    uint64_t second = clock_unix_ms() / 1000, newest = events_newest(folder);
    second = newest >= second ? newest + 1 : second;
    struct events *events = xcalloc(1, sizeof *events);
    events->path =
        xasprintf("%s/" PREFIX "%010" PRIu64 ".gimbal.%06" PRIu64, folder, second, epoch);
    events->file = fopen(events->path, "wxe");
    if (!events->file) {
        rc = error_set(err, -errno, "%s: %s", events->path, strerror(errno));
        events_close(events);
        return rc;
    }
    events_put_beginning(events, from);
    *out = events;
    return 0;
}

int events_flush(struct events *events, struct error *err)
{
    if (fflush(events->file) == 0 && !ferror(events->file))
        return 0;
    return error_set(err, errno ? -errno : -EIO, "%s: %s", events->path,
                     strerror(errno ? errno : EIO));
}

void events_close(struct events *events)
{
    if (!events)
        return;
    if (events->file)
        fclose(events->file);
    free(events->path);
    free(events);
}

void events_put_scalars(struct events *events, uint64_t step, const struct scalar *scalars,
                        size_t count)
{
    Tensorboard__Summary__Value values[SCALARS_MAX], *pointers[SCALARS_MAX];
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    for (size_t i = 0; i < count && summary.n_value < SCALARS_MAX; i++) {
        if (isnan(scalars[i].value))
            continue;
        Tensorboard__Summary__Value *value = &values[summary.n_value];
        tensorboard__summary__value__init(value);
        value->tag = (char *)scalars[i].tag;
        value->value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        value->simple_value = (float)scalars[i].value;
        pointers[summary.n_value++] = value;
    }
    summary.value = pointers;
    event.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    if (summary.n_value > 0)
        events_put(events, step, &event);
}

void events_put_text(struct events *events, uint64_t step, const char *tag, const char *text)
{
    ProtobufCBinaryData bytes = {strlen(text), (uint8_t *)text};
    Tensorboard__Shape__Dim one = TENSORBOARD__SHAPE__DIM__INIT, *dims[] = {&one};
    Tensorboard__Shape shape = TENSORBOARD__SHAPE__INIT;
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;
    Tensorboard__Metadata__PluginData plugin = TENSORBOARD__METADATA__PLUGIN_DATA__INIT;
    Tensorboard__Metadata metadata = TENSORBOARD__METADATA__INIT;
    Tensorboard__Summary__Value value = TENSORBOARD__SUMMARY__VALUE__INIT, *values[] = {&value};
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    one.size = 1;
    shape.n_dim = 1;
    shape.dim = dims;
    tensor.dtype = TENSORBOARD__TENSOR__TYPE__STRING;
    tensor.tensor_shape = &shape;
    tensor.n_string_val = 1;
    tensor.string_val = &bytes;
    plugin.plugin_name = (char *)"text";
    metadata.plugin_data = &plugin;
    value.tag = (char *)tag;
    value.value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    value.metadata = &metadata;
    summary.n_value = 1;
    summary.value = values;
    event.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    events_put(events, step, &event);
}
