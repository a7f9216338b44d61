/* fields.c - typed access to the members of a JSON object, with an error text for each mismatch. */
#include "common/hardware/fields.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

int field_text(const json_t *object, const char *key, const char **out, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a text", key,
                         value ? "something else" : "missing");
    *out = json_string_value(value);
    if (strlen(*out) != json_string_length(value))
        return error_set(err, -EINVAL, "'%s' has a NUL character", key);
    return 0;
}

int field_text_if(const json_t *object, const char *key, const char **out, struct error *err)
{
    *out = NULL;
    return json_object_get(object, key) ? field_text(object, key, out, err) : 0;
}

int field_size(const json_t *object, const char *key, uint64_t most, uint64_t *out,
               struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a whole number", key,
                         value ? "something else" : "missing");
    json_int_t number = json_integer_value(value);
    if (number < 0 || (uint64_t)number > most)
        return error_set(err, -EINVAL, "'%s' is %lld, it must be 0 to %llu", key, (long long)number,
                         (unsigned long long)most);
    *out = (uint64_t)number;
    return 0;
}

int field_size_if(const json_t *object, const char *key, uint64_t most, uint64_t *out,
                  struct error *err)
{
    return json_object_get(object, key) ? field_size(object, key, most, out, err) : 0;
}

int field_count(const json_t *object, const char *key, unsigned *out, struct error *err)
{
    uint64_t number;
    int rc = field_size(object, key, INT_MAX, &number, err);
    if (rc == 0)
        *out = (unsigned)number;
    return rc;
}

int field_count_if(const json_t *object, const char *key, unsigned *out, struct error *err)
{
    return json_object_get(object, key) ? field_count(object, key, out, err) : 0;
}

int field_rate(const json_t *object, const char *key, double *out, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        return error_set(err, -EINVAL, "'%s' is %s, it must be a number", key,
                         value ? "something else" : "missing");
    *out = json_number_value(value);
    return 0;
}

int field_rate_if(const json_t *object, const char *key, double *out, struct error *err)
{
    return json_object_get(object, key) ? field_rate(object, key, out, err) : 0;
}

int field_flag_if(const json_t *object, const char *key, bool *out, struct error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_boolean(value))
        return error_set(err, -EINVAL, "'%s' is something else, it must be true or false", key);
    if (value)
        *out = json_is_true(value);
    return 0;
}
