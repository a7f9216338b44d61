/* descriptors.h - how many files and connections this process may have open. */
#ifndef COMMON_BASE_DESCRIPTORS_H
#define COMMON_BASE_DESCRIPTORS_H

/* As many as the system lets this user have; usually it begins with 1024. */
void descriptors_allow_all(void);

#endif
