/* reader.h - whoever reads what a command prints may go away while it waits for more to print. */
#ifndef COORDINATOR_CLI_READER_H
#define COORDINATOR_CLI_READER_H

#include <poll.h>

/* For a poll: it wakes when nobody reads stdout any more. */
struct pollfd reader_poll(void);
/* EXIT_DONE while somebody does, as far as that poll has seen. Else as if SIGPIPE had come; EXIT_IO
 * where something could not be written. */
int reader_code(const struct pollfd *polled);

#endif
