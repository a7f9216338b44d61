/* corpora.c - stores the data files that jobs read. */
#include "coordinator/store/internal.h"

void store_put_corpus(struct store *store, const struct job *job, const struct corpus *corpus)
{
    for (size_t i = 0; i < corpus->count; i++) {
        const struct corpus_file *file = &corpus->files[i];
        sql_put(&store->sql,
                "INSERT OR REPLACE INTO data_files (job, place, node, epoch, path, size, hash)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                "uututuu", job->number, (uint64_t)i, corpus->node, (uint64_t)corpus->epoch,
                file->path, file->size, file->hash);
    }
}

int store_read_corpus(struct store *store, const struct job *job, struct corpus **out,
                      struct error *err)
{
    struct sql *sql = &store->sql;
    sqlite3_stmt *row = sql_bind(sql,
                                 "SELECT node, epoch, path, size, hash FROM data_files"
                                 " WHERE job = ? ORDER BY place",
                                 "u", job->number);
    *out = NULL;
    while (sql_step(sql, row)) {
        if (!*out)
            *out = corpus_create(sql_text(row, 0), (uint32_t)sql_number(row, 1));
        corpus_add(*out, sql_text(row, 2), sql_number(row, 3), sql_number(row, 4));
    }
    int rc = sql_failed(sql, err);
    if (rc < 0) {
        corpus_destroy(*out);
        *out = NULL;
    }
    return rc;
}
