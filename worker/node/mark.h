/* mark.h - a file that each node leaves in the folder which all nodes share, so that the others can
 * see that they do. */
#ifndef WORKER_NODE_MARK_H
#define WORKER_NODE_MARK_H

/* Leave a mark with this text for the node below `root`, on a thread of its own, because a network
 * file system may keep whoever asks it waiting for ever. A failure is logged. */
void mark_leave(const char *root, const char *node, const char *text);

#endif
