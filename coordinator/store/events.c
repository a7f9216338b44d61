/* events.c - stores the cluster's history and drops its oldest events. */
#include "coordinator/store/internal.h"

/* events are dropped this many at a time, which spreads the cost */
#define DROPPED_TOGETHER 1000

void store_put_event(struct store *store, uint64_t revision, const Gimbal__Event *event)
{
    sql_put(&store->sql,
            "INSERT INTO events (revision, unix_ms, job, node, kind, text, json)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            "uuttttt", revision, event->unix_ms, event->job, event->node, event->kind, event->text,
            event->json);
    if (revision % DROPPED_TOGETHER == 0 && revision > STORE_EVENTS_MAX)
        sql_put(&store->sql, "DELETE FROM events WHERE revision <= ?", "u",
                revision - STORE_EVENTS_MAX);
}

#define CHOSEN                                                                                     \
    "SELECT revision, unix_ms, job, node, kind, text, json FROM events WHERE revision > ?1"        \
    " AND (?2 = '' OR job = ?2) AND (?3 = '' OR node = ?3) AND kind <> ?4 ORDER BY revision "

int store_read_events(struct store *store, const struct store_query *query, store_event_cb callback,
                      void *data, struct error *err)
{
    struct sql *sql = &store->sql;
    const char *text = query->newest ? "SELECT * FROM (" CHOSEN "DESC LIMIT ?5) ORDER BY revision"
                                     : CHOSEN "LIMIT ?5";
    sqlite3_stmt *row = sql_bind(sql, text, "utttu", query->after, query->job, query->node,
                                 query->except ? query->except : "", (uint64_t)query->count_max);
    int rc = 0;
    while (rc >= 0 && sql_step(sql, row)) {
        Gimbal__Event event = GIMBAL__EVENT__INIT;
        event.unix_ms = sql_number(row, 1);
        event.job = (char *)sql_text(row, 2);
        event.node = (char *)sql_text(row, 3);
        event.kind = (char *)sql_text(row, 4);
        event.text = (char *)sql_text(row, 5);
        event.json = (char *)sql_text(row, 6);
        rc = callback(data, sql_number(row, 0), &event);
    }
    if (row)
        sql_leave(row);
    return sql_failed(sql, err);
}
