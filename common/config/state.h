/* state.h - the default folders for a daemon's state, which must survive it, and for the cache,
 * which can be recreated. */
#ifndef COMMON_CONFIG_STATE_H
#define COMMON_CONFIG_STATE_H

/* The state folder of a daemon ("worker"), freed by the caller: what systemd assigns
 * (STATE_DIRECTORY), else /var/lib/gimbal/NAME for root, else gimbal/NAME in XDG_STATE_HOME or
 * ~/.local/state. NULL when HOME is not set either. */
char *state_folder(const char *name);
/* The user's cache folder, freed by the caller: gimbal in XDG_CACHE_HOME or ~/.cache. NULL as
 * above. */
char *cache_folder(void);

#endif
