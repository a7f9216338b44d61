/* schema.c - the tables as a list of migration steps; each store records how many it has been
 * through.
 *
 * A release that changes the schema appends a step; steps are never changed. Words are stored as
 * words, so the order of an enum does not matter and a person can read `sqlite3 store.db`. */
#include "coordinator/store/internal.h"

#include <errno.h>
#include <stdio.h>

static const char *const steps[] = {
    "CREATE TABLE cluster (id INTEGER NOT NULL, term INTEGER NOT NULL);"
    "CREATE TABLE jobs (number INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL,"
    " user TEXT NOT NULL, text TEXT NOT NULL, given TEXT NOT NULL, devices_min INTEGER NOT NULL,"
    " devices_max INTEGER NOT NULL, devices_needed INTEGER NOT NULL, kind TEXT NOT NULL,"
    " state TEXT NOT NULL, reason TEXT NOT NULL, words TEXT NOT NULL, epoch INTEGER NOT NULL,"
    " plan TEXT NOT NULL, holding INTEGER NOT NULL, step INTEGER NOT NULL,"
    " steps INTEGER NOT NULL, loss REAL, tokens_per_s REAL,"
    " submitted_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX jobs_key ON jobs (user, key) WHERE key != '';"
    "CREATE TABLE ranks (job INTEGER NOT NULL, rank INTEGER NOT NULL, worker TEXT NOT NULL,"
    " instance INTEGER NOT NULL, device INTEGER NOT NULL, state TEXT NOT NULL,"
    " status INTEGER NOT NULL, PRIMARY KEY (job, rank)) WITHOUT ROWID;"
    "CREATE TABLE plans (job INTEGER NOT NULL, epoch INTEGER NOT NULL, id TEXT NOT NULL,"
    " json TEXT NOT NULL, candidates TEXT NOT NULL, hashes BLOB NOT NULL,"
    " PRIMARY KEY (job, epoch)) WITHOUT ROWID;"
    "CREATE TABLE workers (name TEXT PRIMARY KEY, instance INTEGER NOT NULL, past BLOB NOT NULL,"
    " report BLOB NOT NULL, dead INTEGER NOT NULL, lost_ms INTEGER NOT NULL,"
    " draining INTEGER NOT NULL, drain_reason TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE events (revision INTEGER PRIMARY KEY, unix_ms INTEGER NOT NULL,"
    " job TEXT NOT NULL, node TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,"
    " json TEXT NOT NULL);"
    "CREATE INDEX events_job ON events (job, revision);",

    "ALTER TABLE jobs ADD COLUMN held TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE jobs ADD COLUMN pauses INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN resumes INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN restarts_max INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN fault_step INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN again TEXT NOT NULL DEFAULT '';",

    "CREATE TABLE data_files (job INTEGER NOT NULL, place INTEGER NOT NULL, node TEXT NOT NULL,"
    " epoch INTEGER NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, hash INTEGER NOT NULL,"
    " PRIMARY KEY (job, place)) WITHOUT ROWID;",

    "CREATE TABLE tokens (id TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL,"
    " hash BLOB NOT NULL, issued_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
    " uses_left INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE credentials (role TEXT NOT NULL, name TEXT NOT NULL, hash BLOB NOT NULL,"
    " issued_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL,"
    " PRIMARY KEY (role, name)) WITHOUT ROWID;",

    "CREATE TABLE checkpoints (job INTEGER NOT NULL, step INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, folder TEXT NOT NULL, bytes INTEGER NOT NULL,"
    " unix_ms INTEGER NOT NULL, PRIMARY KEY (job, step, epoch)) WITHOUT ROWID;"
    "CREATE TABLE kept_values (job TEXT NOT NULL, epoch INTEGER NOT NULL, key TEXT NOT NULL,"
    " value BLOB NOT NULL, PRIMARY KEY (job, epoch, key)) WITHOUT ROWID;",

    "ALTER TABLE jobs ADD COLUMN replans INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE ranks ADD COLUMN role TEXT NOT NULL DEFAULT 'trains';",

    "ALTER TABLE checkpoints ADD COLUMN damaged INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN saves INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE plans ADD COLUMN compute_s BLOB;",

    "ALTER TABLE jobs RENAME COLUMN fault_step TO reached_step;"
    "ALTER TABLE jobs ADD COLUMN faults INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE jobs ADD COLUMN releases INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN named TEXT NOT NULL DEFAULT '';",

    "ALTER TABLE cluster ADD COLUMN copied_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE cluster ADD COLUMN jobs_from INTEGER NOT NULL DEFAULT 0;",
};
#define STEPS (sizeof steps / sizeof *steps)

static uint64_t version(struct sql *sql)
{
    sqlite3_stmt *statement = sql_bind(sql, "PRAGMA user_version", "");
    uint64_t found = sql_step(sql, statement) ? sql_number(statement, 0) : 0;
    if (statement)
        sql_leave(statement);
    return found;
}

void schema_migrate(struct sql *sql)
{
    uint64_t found = version(sql);
    if (found > STEPS)
        sql_fail(sql, -EPROTO,
                 "a newer release has written it: its schema is %llu, this release knows %zu",
                 (unsigned long long)found, STEPS);
    for (size_t i = found; i < STEPS && sql->rc == 0; i++) {
        char mark[64];
        snprintf(mark, sizeof mark, "PRAGMA user_version = %zu", i + 1);
        sql_script(sql, "BEGIN IMMEDIATE");
        sql_script(sql, steps[i]);
        sql_script(sql, mark);
        sql_script(sql, "COMMIT");
    }
}
