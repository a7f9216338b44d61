/* state.h - where a daemon keeps what must survive it, when it is not told. */
#ifndef COMMON_CONFIG_STATE_H
#define COMMON_CONFIG_STATE_H

/* The folder of the daemon of that name ("worker"), yours: what systemd gives it
 * (STATE_DIRECTORY), else for root /var/lib/gimbal/NAME, else gimbal/NAME in XDG_STATE_HOME or
 * ~/.local/state. NULL when even HOME is not known. */
char *state_folder(const char *name);

#endif
