/* Where a backend keeps what it found out as it was built, for the launches of the same work that follow:
 * which kernel a trial found the fastest. For one that has the setting "cache" (warm, cold). */
#ifndef TIMETRIAL_KEPT_FOLDER_H
#define TIMETRIAL_KEPT_FOLDER_H

/* The environment variable that names the folder, which is there; not set where nothing is to be kept.
 * Several launches may read and write in it at once, so a file must appear whole (rename). The contender
 * should keep beside what it chose all that the choice depends on, and say in its facts whether it chose or
 * read. */
#define TT_KEPT_FOLDER "TIMETRIAL_KEPT"

#endif /* TIMETRIAL_KEPT_FOLDER_H */
