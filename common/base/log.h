/* log.h - logging to stderr, one logfmt line per event: ts level mod msg; or, for people at a
 * terminal, one sentence per event.
 *
 * Only the top level of a program logs; libraries return errors. */
#ifndef COMMON_BASE_LOG_H
#define COMMON_BASE_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* "debug", "info", "warn", "error"; ends with NULL. */
extern const char *const log_level_names[];

/* Set the name of this process, which every line carries (not copied), and the lowest level that is
 * written. Defaults: "gimbal", LOG_INFO. */
void log_open(const char *module, enum log_level least);
/* Write sentences instead, of at least this level: "warning: TEXT", "error: TEXT", or for what is
 * less only the text. */
void log_open_sentences(enum log_level least);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
