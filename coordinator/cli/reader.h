/* reader.h - notices that the reader of a command's output has gone away, while the command waits
 * for more to print. */
#ifndef COORDINATOR_CLI_READER_H
#define COORDINATOR_CLI_READER_H

#include <poll.h>

/* For use in poll(2), which then wakes up when nobody reads stdout any more. */
struct pollfd reader_poll(void);
/* EXIT_DONE as long as somebody reads stdout, as far as that poll has seen. Otherwise the exit code
 * of SIGPIPE; EXIT_IO if something could not be written. */
int reader_code(const struct pollfd *polled);

#endif
