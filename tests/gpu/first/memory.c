/* memory.c - opening the device, its memory, and memory of the host that it accesses by itself. */
#include "common/base/clock.h"
#include "tests/gpu/first/first.h"
#include "worker/kernels/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static size_t part_of(uint64_t room, size_t most)
{
    return room / 256 < most ? (size_t)(room / 256) / MIB * MIB : most;
}

/* With the other way of loading code: what it costs every process. */
static int start(const struct device *none, struct error *err)
{
    const struct device *device;
    struct device_stream *stream = NULL;
    uint64_t room = 0;
    double begin = clock_s();
    (void)none;
    int rc = device_open(first_name(), &device, err);
    double opened = clock_s();
    if (rc == 0)
        rc = device->accelerator->stream_open(&stream, true, err);
    if (rc == 0)
        rc = device->accelerator->free_bytes(&room, err);
    if (rc < 0)
        return rc;
    first_say("opened in %.2f s, a stream in %.2f s; %llu MiB are free then", opened - begin,
              clock_s() - opened, (unsigned long long)(room / MIB));
    device->accelerator->stream_close(stream);
    return 0;
}

/* In a process of its own: a choice must come before anything else is asked. */
static int list_in_child(struct device_info *out, struct error *err)
{
    int ends[2], status = 1;
    if (pipe(ends) < 0)
        return error_set(err, -errno, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        const struct device *device;
        int rc = device_load(first_name(), &device, err);
        int count = rc == 0 ? device->list(out, 1, err) : rc;
        _exit(count != 1 || write(ends[1], out, sizeof *out) != sizeof *out);
    }
    close(ends[1]);
    bool whole = read(ends[0], out, sizeof *out) == sizeof *out;
    waitpid(pid, &status, 0);
    close(ends[0]);
    return first_expect(whole && status == 0, err, "the devices cannot be listed");
}

static int choose(const struct device *none, struct error *err)
{
    char name[2 * DEVICE_TEXT_SIZE];
    const struct device *device;
    struct device_info listed, seen;
    (void)none;
    int rc = list_in_child(&listed, err);
    if (rc < 0)
        return rc;
    snprintf(name, sizeof name, "%s:%s", first_name(), listed.id);
    rc = device_open(name, &device, err);
    if (rc == 0 && device->list(&seen, 1, err) != 1)
        rc = -EIO;
    if (rc == 0)
        rc = first_expect(strcmp(listed.id, seen.id) == 0, err, "%s was chosen, %s is seen",
                          listed.id, seen.id);
    first_say("%s, %s at %s", listed.id, listed.name, listed.place);
    return rc;
}

/* More than there is, then what there is. */
static int reserve(const struct device *device, struct error *err)
{
    const struct accelerator *accelerator = device->accelerator;
    struct error refusal;
    uint64_t room = 0, after = 0;
    void *memory = NULL;
    int rc = accelerator->free_bytes(&room, err);
    if (rc < 0)
        return rc;
    rc = accelerator->reserve(room + (UINT64_C(1) << 40), &memory, &refusal);
    rc = first_expect(rc == -ENOMEM, err, "a terabyte too much: %d, %s", rc, refusal.text);
    double begin = clock_s();
    if (rc == 0)
        rc = accelerator->reserve(room / 10 * 9, &memory, err);
    double passed = clock_s() - begin;
    if (rc == 0)
        rc = first_expect((uintptr_t)memory % 256 == 0, err, "memory at %p", memory);
    accelerator->release(memory);
    if (rc == 0)
        rc = accelerator->free_bytes(&after, err);
    first_say("%llu MiB free, nine tenths of them in %.1f ms; %llu MiB free again",
              (unsigned long long)(room / MIB), 1e3 * passed, (unsigned long long)(after / MIB));
    return rc;
}

/* The best of three copies each way, in GB/s, of which what comes back is compared. */
static int time_copies(const struct device *device, void *host, size_t bytes, const char *what,
                       struct error *err)
{
    const struct accelerator *accelerator = device->accelerator;
    struct device_stream *stream = NULL;
    void *memory = NULL;
    double best[2] = {1e9, 1e9};
    memset(host, 0x5a, bytes);
    int rc = accelerator->stream_open(&stream, false, err);
    if (rc == 0)
        rc = accelerator->reserve(bytes, &memory, err);
    accelerator->enter(stream);
    for (int i = 0; i < 6 && rc == 0; i++) {
        double begin = clock_s();
        if (i % 2 == 0)
            accelerator->upload(memory, host, bytes);
        else
            accelerator->download(host, memory, bytes);
        rc = accelerator->finish(err);
        double passed = clock_s() - begin;
        best[i % 2] = passed < best[i % 2] ? passed : best[i % 2];
        if (i % 2 == 0)
            memset(host, 0, bytes);
    }
    const char *bytes_back = host;
    if (rc == 0)
        rc = first_expect(bytes_back[0] == 0x5a && bytes_back[bytes - 1] == 0x5a, err,
                          "%s: other bytes came back", what);
    first_say("%s %.1f up %.1f down GB/s; ", what, (double)bytes / best[0] / 1e9,
              (double)bytes / best[1] / 1e9);
    accelerator->enter(NULL);
    accelerator->release(memory);
    accelerator->stream_close(stream);
    return rc;
}

static int time_registered(const struct device *device, int fd, size_t bytes, const char *what,
                           struct error *err)
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (mapping == MAP_FAILED)
        return error_set(err, -errno, "%s: no mapping: %s", what, strerror(errno));
    /* As the state of a rank, which begins where it may. */
    int rc = device->accelerator->host_register(mapping + 64, bytes - 64, err);
    if (rc == 0) {
        rc = time_copies(device, mapping + 64, bytes - 64, what, err);
        device->accelerator->host_unregister(mapping + 64);
    }
    munmap(mapping, bytes);
    return rc < 0 ? error_prefix(err, rc, "%s", what) : 0;
}

static int pin(const struct device *device, struct error *err)
{
    uint64_t room = 0;
    void *pinned = NULL;
    int rc = device->accelerator->free_bytes(&room, err);
    size_t bytes = part_of(room, 256 * MIB);
    if (rc == 0)
        rc = device->accelerator->pin(bytes, &pinned, err);
    if (rc == 0)
        rc = time_copies(device, pinned, bytes, "pinned", err);
    device->accelerator->unpin(pinned);
    void *pageable = rc == 0 ? malloc(bytes) : NULL;
    if (pageable)
        rc = time_copies(device, pageable, bytes, "pageable", err);
    free(pageable);
    return rc;
}

static int register_host(const struct device *device, struct error *err)
{
    uint64_t room = 0;
    int rc = device->accelerator->free_bytes(&room, err);
    size_t bytes = part_of(room, 256 * MIB);
    int fd = memfd_create("state", MFD_CLOEXEC);
    if (rc == 0 && (fd < 0 || ftruncate(fd, (off_t)bytes) < 0))
        rc = error_set(err, -errno, "no memory to share: %s", strerror(errno));
    if (rc == 0)
        rc = time_registered(device, fd, bytes, "shared", err);
    if (rc == 0)
        rc = time_registered(device, -1, bytes, "private", err);
    close(fd);
    return rc;
}

const struct first_check first_memory[] = {
    {"start-lazy", "the driver, the libraries and the module fit each other", 60,
     "CUDA_MODULE_LOADING=LAZY", start, true},
    {"start-eager", "code that is loaded at once takes seconds and memory that a rank can spare",
     90, "CUDA_MODULE_LOADING=EAGER", start, true},
    {"choose", "a process sees the device that it has chosen by its id", 60, NULL, choose, true},
    {"reserve", "a reservation that fails leaves the device well", 60, NULL, reserve, false},
    {"pin", "memory can be pinned, and is copied faster then", 60, NULL, pin, false},
    {"register", "memory that processes share, and that begins anywhere, can be pinned", 60, NULL,
     register_host, false},
    {0},
};
