/* beside.c - copies to the host beside computing: the copies of a rank's state are made so. */
#include "common/base/clock.h"
#include "tests/gpu/first/first.h"
#include "tests/support/suite.h"

#define MOST_BYTES ((size_t)256 << 20)
#define COMPUTING_S 0.02 /* of products, at least */

struct beside {
    const struct device *device;
    struct device_stream *computes, *copies;
    struct first_call product;
    void *there, *here;
    size_t bytes;
    int products;
};

static void issue_products(const struct beside *beside)
{
    beside->device->accelerator->enter(beside->computes);
    for (int i = 0; i < beside->products; i++)
        first_call_run(&beside->product, FORWARD);
}

static void issue_copy(const struct beside *beside)
{
    beside->device->accelerator->enter(beside->copies);
    beside->device->accelerator->download(beside->here, beside->there, beside->bytes);
}

/* Seconds until the streams have done what they are given. */
static int time_beside(const struct beside *beside, bool computes, bool copies, double *out,
                       struct error *err)
{
    const struct accelerator *accelerator = beside->device->accelerator;
    double begin = clock_s();
    if (computes)
        issue_products(beside);
    if (copies)
        issue_copy(beside);
    accelerator->enter(beside->copies);
    int rc = accelerator->finish(err);
    accelerator->enter(beside->computes);
    if (rc == 0)
        rc = accelerator->finish(err);
    *out = clock_s() - begin;
    return rc;
}

static int beside_open(struct beside *beside, const struct device *device, struct error *err)
{
    const struct accelerator *accelerator = device->accelerator;
    uint64_t room = 0;
    struct sizes sizes = {0};
    sizes_set(&sizes, 'b', test_share(64));
    sizes_set(&sizes, 's', 32);
    sizes_set(&sizes, 'h', 512);
    sizes_set(&sizes, 'f', 2048);
    *beside = (struct beside){.device = device, .products = 1};
    int rc = accelerator->free_bytes(&room, err);
    beside->bytes = room / 256 < MOST_BYTES ? (size_t)(room / 256) : MOST_BYTES;
    if (rc == 0)
        rc = accelerator->stream_open(&beside->computes, true, err);
    if (rc == 0)
        rc = accelerator->stream_open(&beside->copies, false, err);
    if (rc == 0)
        rc = accelerator->pin(beside->bytes, &beside->here, err);
    if (rc == 0)
        rc = accelerator->reserve(beside->bytes, &beside->there, err);
    accelerator->enter(beside->computes);
    if (rc == 0)
        rc = first_call_open(&beside->product, device, "fc1", &sizes, ELEMENT_BF16, true, err);
    return rc;
}

static void beside_close(struct beside *beside)
{
    const struct accelerator *accelerator = beside->device->accelerator;
    first_call_close(&beside->product);
    accelerator->enter(NULL);
    accelerator->stream_close(beside->computes);
    accelerator->stream_close(beside->copies);
    accelerator->release(beside->there);
    accelerator->unpin(beside->here);
}

static int copy_beside(const struct device *device, struct error *err)
{
    struct beside beside;
    double computing = 0, copying = 0, both = 0;
    int rc = beside_open(&beside, device, err);
    if (rc == 0)
        rc = time_beside(&beside, true, true, &both, err); /* the first of each costs more */
    while (rc == 0 && computing < COMPUTING_S) {
        beside.products *= 2;
        rc = time_beside(&beside, true, false, &computing, err);
    }
    if (rc == 0)
        rc = time_beside(&beside, false, true, &copying, err);
    if (rc == 0)
        rc = time_beside(&beside, true, true, &both, err);
    first_say("%.1f ms of products, %.1f ms of copying %.0f MiB to the host; both at once %.1f ms",
              1e3 * computing, 1e3 * copying, (double)beside.bytes / 1048576, 1e3 * both);
    beside_close(&beside);
    return rc;
}

const struct first_check first_beside[] = {
    {"copy-beside", "copies to the host run beside products", 60, NULL, copy_beside, false},
    {0},
};
