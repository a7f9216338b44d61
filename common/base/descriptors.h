/* descriptors.h - the limit on open files and connections of this process. */
#ifndef COMMON_BASE_DESCRIPTORS_H
#define COMMON_BASE_DESCRIPTORS_H

/* Raise the limit to the most that the system allows this user. The usual default is 1024. */
void descriptors_allow_all(void);

#endif
