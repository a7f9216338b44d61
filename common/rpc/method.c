/* method.c - look-ups in a service's table. */
#include "common/rpc/method.h"

#include <string.h>

int rpc_service_find(const struct rpc_service *service, const char *name)
{
    for (unsigned i = 0; i < service->descriptor->n_methods; i++)
        if (strcmp(service->methods[i].name, name) == 0)
            return (int)i;
    return -1;
}

size_t rpc_service_request_bytes_max(const struct rpc_service *service)
{
    size_t most = 0;
    for (unsigned i = 0; i < service->descriptor->n_methods; i++)
        if (service->methods[i].request_bytes_max > most)
            most = service->methods[i].request_bytes_max;
    return most;
}
