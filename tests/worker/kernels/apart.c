/* apart.c - a reservation and a stream at a time, from a pool: making them takes long. */
#include "tests/worker/kernels/apart.h"

#include "common/base/memory.h"
#include "worker/kernels/devices.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (UINT64_C(8) << 20)
#define GUARD 256 /* bytes on either side */
#define GUARD_WORD 0x7fb6b6b6u
#define ARRAYS_MAX 64

struct apart {
    struct apart *next; /* in the pool */
    const struct device *device;
    struct device_stream *lane;
    char *room;
    uint64_t used;
    bool round;
    int count;
    struct array {
        char *host, *there;
        size_t bytes;
    } arrays[ARRAYS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct apart *pool;

const struct device *apart_device(int index)
{
    struct error err;
    const char *asked = getenv("GIMBAL_TEST_DEVICE");
    const struct device *device = devices[index];
    if (asked && index > 0)
        return NULL;
    if (asked && device_load(asked, &device, &err) < 0)
        ck_abort_msg("GIMBAL_TEST_DEVICE: %s", err.text);
    if (device->probe(&err) == 0)
        return device;
    if (asked)
        ck_abort_msg("GIMBAL_TEST_DEVICE: %s", err.text);
    printf("skip %s: %s\n", device->name, err.text);
    return NULL;
}

static struct apart *take(const struct device *device)
{
    pthread_mutex_lock(&lock);
    struct apart **at = &pool;
    while (*at && (*at)->device != device)
        at = &(*at)->next;
    struct apart *apart = *at;
    if (apart)
        *at = apart->next;
    pthread_mutex_unlock(&lock);
    return apart;
}

struct apart *apart_begin(const struct device *device)
{
    struct apart *apart = take(device);
    const struct accelerator *accelerator = device->accelerator;
    struct error err = {""};
    if (!apart) {
        void *room = NULL;
        apart = xcalloc(1, sizeof *apart);
        apart->device = device;
        if (accelerator) {
            ck_assert_msg(accelerator->stream_open(&apart->lane, true, &err) == 0, "%s", err.text);
            ck_assert_msg(accelerator->reserve(ROOM, &room, &err) == 0, "%s", err.text);
        }
        apart->room = room;
    }
    apart->used = 0;
    apart->round = false;
    apart->count = 0;
    if (accelerator)
        accelerator->enter(apart->lane);
    return apart;
}

void apart_round(struct apart *apart)
{
    apart->round = true;
}

/* The array with its guards, as it lies on the device from there - GUARD on. */
static size_t with_guards(const struct array *array, char **out)
{
    size_t whole = GUARD + (array->bytes + 3) / 4 * 4 + GUARD;
    const uint32_t word = GUARD_WORD;
    *out = xcalloc(1, whole);
    for (size_t i = 0; i < whole; i += sizeof word)
        memcpy(*out + i, &word, sizeof word);
    return whole;
}

void *apart_bring(struct apart *apart, void *host, size_t bytes)
{
    const struct accelerator *accelerator = apart->device->accelerator;
    if (!accelerator || !host)
        return host;
    for (int i = 0; i < apart->count; i++)
        if (apart->arrays[i].host == host)
            return apart->arrays[i].there;
    ck_assert_int_lt(apart->count, ARRAYS_MAX);
    struct array *array = &apart->arrays[apart->count++];
    *array = (struct array){.host = host, .bytes = bytes};
    char *image;
    size_t whole = with_guards(array, &image);
    memcpy(image + GUARD, host, bytes);
    size_t crooked = apart->round ? 0 : sizeof(float) * (size_t)(apart->count % 4);
    char *place = apart->room + apart->used + crooked;
    array->there = place + GUARD;
    apart->used += (whole + 2 * GUARD) / GUARD * GUARD;
    ck_assert_uint_le(apart->used, ROOM);
    accelerator->upload(place, image, whole);
    free(image);
    return array->there;
}

static void bring_back(const struct apart *apart, const struct array *array)
{
    char *image, *now;
    size_t whole = with_guards(array, &image);
    with_guards(array, &now);
    struct error err = {""};
    apart->device->accelerator->download(now, array->there - GUARD, whole);
    ck_assert_msg(apart->device->accelerator->finish(&err) == 0, "%s", err.text);
    memcpy(array->host, now + GUARD, array->bytes);
    memcpy(image + GUARD, now + GUARD, array->bytes);
    ck_assert_msg(memcmp(image, now, whole) == 0, "%s wrote beside an array of %zu bytes",
                  apart->device->name, array->bytes);
    free(image);
    free(now);
}

void apart_end(struct apart *apart)
{
    for (int i = 0; i < apart->count; i++)
        bring_back(apart, &apart->arrays[i]);
    if (apart->device->accelerator)
        apart->device->accelerator->enter(NULL);
    pthread_mutex_lock(&lock);
    apart->next = pool;
    pool = apart;
    pthread_mutex_unlock(&lock);
}
