/* tar.c - each file is a header of 512 bytes and its content, padded to a multiple of 512; two
 * empty blocks end the archive. */
#include "coordinator/cli/tar.h"

#include <inttypes.h>
#include <string.h>

#define BLOCK 512

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], user[32], group[32], device[16], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "as POSIX has it");

static void pad(FILE *out, size_t size)
{
    static const char zeros[BLOCK];
    fwrite(zeros, 1, size, out);
}

void tar_add(FILE *out, const char *name, const char *bytes, size_t size, int64_t unix_s)
{
    struct header header = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;
    snprintf(header.name, sizeof header.name, "%s", name);
    snprintf(header.mode, sizeof header.mode, "%07o", 0600);
    snprintf(header.uid, sizeof header.uid, "%07o", 0);
    snprintf(header.gid, sizeof header.gid, "%07o", 0);
    snprintf(header.size, sizeof header.size, "%011" PRIo64, (uint64_t)size);
    snprintf(header.mtime, sizeof header.mtime, "%011" PRIo64, (uint64_t)unix_s);
    memset(header.checksum, ' ', sizeof header.checksum); /* blank while it is computed */
    for (size_t i = 0; i < sizeof header; i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
    fwrite(&header, 1, sizeof header, out);
    fwrite(bytes, 1, size, out);
    pad(out, (BLOCK - size % BLOCK) % BLOCK);
}

void tar_end(FILE *out)
{
    pad(out, BLOCK);
    pad(out, BLOCK);
}
