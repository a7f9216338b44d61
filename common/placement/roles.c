/* roles.c - the table of all roles. Searches try roles in this order. */
#include "common/placement/role.h"

#include <stdio.h>
#include <string.h>

extern const struct role role_batch, role_tensor, role_tensor_seq, role_ulysses, role_context,
    role_hidden;

const struct role *const roles[] = {
    &role_batch, &role_tensor, &role_tensor_seq, &role_ulysses, &role_context, &role_hidden, NULL,
};

const struct role *role_find(const char *name)
{
    for (int i = 0; roles[i]; i++)
        if (strcmp(roles[i]->name, name) == 0)
            return roles[i];
    return NULL;
}

char *role_list(char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; roles[i] && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? ", %s" : "%s", roles[i]->name);
    return out;
}
