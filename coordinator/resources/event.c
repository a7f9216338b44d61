/* event.c - an event of the history. */
#include "coordinator/resources/resources.h"

json_t *resource_event(const Gimbal__Event *event)
{
    json_t *more = *event->json ? json_loads(event->json, 0, NULL) : NULL;
    return resource_object("Event", json_pack("{s:f, s:s, s:s, s:s, s:s, s:o}", "unix_s",
                                              (double)event->unix_ms / 1000, "event", event->kind,
                                              "job", event->job, "node", event->node, "text",
                                              event->text, "more", more ? more : json_null()));
}
