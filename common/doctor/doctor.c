/* doctor.c - runs checks, collects their findings, and converts findings to and from JSON. */
#include "common/doctor/doctor.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_SIZE 1024

static const char *const names[] = {
    [VERDICT_OK] = "ok",
    [VERDICT_WARNING] = "warning",
    [VERDICT_BLOCKING] = "blocking",
};
#define VERDICTS (sizeof names / sizeof *names)

const char *verdict_name(enum verdict verdict)
{
    return names[verdict];
}

static void finding_add(struct findings *out, const struct finding *finding)
{
    out->items = grow(out->items, out->count, &out->capacity, sizeof *out->items);
    out->items[out->count++] = (struct finding){
        .check = xstrdup(finding->check),
        .about = xstrdup(finding->about),
        .verdict = finding->verdict,
        .found = xstrdup(finding->found),
        .right = finding->right ? xstrdup(finding->right) : NULL,
    };
}

static void add_words(struct findings *out, enum verdict verdict, const char *right,
                      const char *format, va_list arguments)
{
    char found[SENTENCE_SIZE];
    vsnprintf(found, sizeof found, format, arguments);
    finding_add(out, &(struct finding){(char *)out->check, (char *)out->about, verdict, found,
                                       (char *)right});
}

void finding_ok(struct findings *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_words(out, VERDICT_OK, NULL, format, arguments);
    va_end(arguments);
}

void finding_warn(struct findings *out, const char *right, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_words(out, VERDICT_WARNING, right, format, arguments);
    va_end(arguments);
}

void finding_block(struct findings *out, const char *right, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_words(out, VERDICT_BLOCKING, right, format, arguments);
    va_end(arguments);
}

void doctor_run(const struct doctor_check *const *checks, void *scene, struct findings *out)
{
    for (; *checks; checks++) {
        out->check = (*checks)->name;
        out->about = (*checks)->about;
        (*checks)->cb(scene, out);
    }
}

enum verdict findings_worst(const struct findings *findings)
{
    enum verdict worst = VERDICT_OK;
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].verdict > worst)
            worst = findings->items[i].verdict;
    return worst;
}

void findings_finish(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->items[i].check);
        free(findings->items[i].about);
        free(findings->items[i].found);
        free(findings->items[i].right);
    }
    free(findings->items);
    *findings = (struct findings){0};
}

/* Paths and messages of libraries need not be UTF-8. If not, bytes beyond ASCII become '?'. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    char *plain = json ? NULL : xstrdup(text);
    for (char *at = plain; at && *at; at++)
        if ((unsigned char)*at > '~')
            *at = '?';
    json = json ? json : json_string(plain);
    free(plain);
    return json;
}

json_t *findings_to_json(const struct findings *findings)
{
    json_t *list = json_array();
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *item = &findings->items[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "check", item->check, "about", item->about,
                            "verdict", verdict_name(item->verdict), "found", text_json(item->found),
                            "right", item->right ? text_json(item->right) : json_null()));
    }
    return list;
}

int findings_add_json(struct findings *findings, const json_t *json, struct error *err)
{
    size_t index;
    const json_t *each;
    json_array_foreach(json, index, each)
    {
        const char *verdict = json_string_value(json_object_get(each, "verdict"));
        struct finding finding = {
            .check = (char *)json_string_value(json_object_get(each, "check")),
            .about = (char *)json_string_value(json_object_get(each, "about")),
            .found = (char *)json_string_value(json_object_get(each, "found")),
            .right = (char *)json_string_value(json_object_get(each, "right")),
        };
        while (verdict && finding.verdict < VERDICTS &&
               strcmp(names[finding.verdict], verdict) != 0)
            finding.verdict++;
        if (!verdict || finding.verdict == VERDICTS || !finding.check || !finding.about ||
            !finding.found)
            return error_set(err, -EINVAL, "finding %zu is none", index);
        finding_add(findings, &finding);
    }
    return 0;
}
