/* descriptors.c - the soft limit goes up to the hard one; where it cannot, it stays. */
#include "common/base/descriptors.h"

#include <sys/resource.h>

void descriptors_allow_all(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}
