/* object.c - what all resources have in common. */
#include "coordinator/resources/resources.h"

#include <assert.h>
#include <math.h>

json_t *resource_object(const char *kind, json_t *members)
{
    json_t *object = json_pack("{s:s, s:s}", "apiVersion", "gimbal/v1", "kind", kind);
    assert(object && members);
    json_object_update(object, members);
    json_decref(members);
    return object;
}

json_t *resource_list(const char *kind, const char *member, json_t *items)
{
    return resource_object(kind, json_pack("{s:o}", member, items));
}

json_t *resource_number(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}
