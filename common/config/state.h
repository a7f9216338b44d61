/* state.h - where a daemon keeps what must survive it, and a command what it can make again, when
 * they are not told. */
#ifndef COMMON_CONFIG_STATE_H
#define COMMON_CONFIG_STATE_H

/* The folder of the daemon of that name ("worker"), yours: what systemd gives it
 * (STATE_DIRECTORY), else for root /var/lib/gimbal/NAME, else gimbal/NAME in XDG_STATE_HOME or
 * ~/.local/state. NULL when even HOME is not known. */
char *state_folder(const char *name);
/* The folder of the user, yours: gimbal in XDG_CACHE_HOME or ~/.cache. NULL as above. */
char *state_cache_folder(void);

#endif
