/* errors.c - a table of the CUDA runtime's errors: the number, our errno, what to do about it. */
#include "worker/kernels/cuda/errors.h"

#include "common/base/units.h"

#include <errno.h>
#include <stddef.h>

static const struct {
    int status, rc;
    const char *advice;
} rows[] = {
    {2, -ENOMEM, "the device's memory is full; other processes may use it, see nvidia-smi"},
    {3, -ENODEV, "the driver does not start; nvidia-smi says whether it runs"},
    {34, -ENODEV, "a stub of the driver was found instead of the driver"},
    {35, -ENODEV,
     "there is no driver, or it is older than this program's CUDA; a newer one is needed"},
    {46, -ENODEV, "another process has the device for itself; its compute mode should be default"},
    {100, -ENODEV, "there is no NVIDIA device, or CUDA_VISIBLE_DEVICES hides it"},
    {101, -ENODEV, "there is no such device, or CUDA_VISIBLE_DEVICES hides it"},
    {209, -ENODEV,
     "this program has no code for such a device; it is made for compute capability 8.0, 9.0 and "
     "10.0"},
    {214, -EIO, "the device's memory has an error that cannot be corrected; it needs a reset"},
    {700, -EIO, "a kernel touched memory that is not there; that is a fault of this program"},
    {702, -EIO, "a kernel took longer than the device's watchdog allows"},
    {716, -EIO, "a kernel read a number across its alignment; that is a fault of this program"},
    {719, -EIO, "a kernel broke off, or the device was lost; compute-sanitizer or dmesg say more"},
    {802, -ENODEV, "the system's fabric of devices is not ready; nvidia-fabricmanager should run"},
    {803, -ENODEV, "the driver's kernel module and its library are of different versions"},
};

int errors_set(struct error *err, int status, const char *name, const char *text, const char *what)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status)
            return error_set(err, rows[i].rc, "CUDA, %s: %s (%s)", what, rows[i].advice, name);
    return error_set(err, -EIO, "CUDA, %s: %s (%s)", what, text, name);
}

int errors_set_memory(struct error *err, uint64_t bytes, uint64_t free_bytes, uint64_t whole_bytes)
{
    char asked[32], left[32], whole[32];
    units_print_bytes(asked, sizeof asked, (double)bytes);
    units_print_bytes(left, sizeof left, (double)free_bytes);
    units_print_bytes(whole, sizeof whole, (double)whole_bytes);
    return error_set(err, -ENOMEM, "%s of the device's memory were asked for; %s of %s are free",
                     asked, left, whole);
}
