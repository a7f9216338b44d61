/* log.h - one line per event on stderr, in logfmt: ts level mod msg.
 *
 * Only the top of a program logs; libraries return errors. */
#ifndef COMMON_BASE_LOG_H
#define COMMON_BASE_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Name of this process in every line, and the least level that is written. */
void log_open(const char *module, enum log_level least);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
