/* Settings as plug-ins report them: what a library says is in force.
 *
 * timetrial asks every setting twice: the library's own getter (this struct) and the kernel (threads
 * that work, their allowed CPUs, mapped files), because getters are known to lie. The plug-in only
 * reports; whether asked and effective agree is decided in one place, by the parent process.
 */
#ifndef TIMETRIAL_SETTINGS_H
#define TIMETRIAL_SETTINGS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TT_SETTING_TEXT = 192 };

/* The answer to "what value has this setting now, and how do you know?" Both texts are NUL-terminated. */
typedef struct tt_setting_reading {
    uint32_t size;                   /* sizeof(tt_setting_reading) of the caller */
    char effective[TT_SETTING_TEXT]; /* the value in force, in the form in which it is asked: "2" */
    char how_read[TT_SETTING_TEXT];  /* the source, by name: "omp_get_max_threads()" */
} tt_setting_reading;

#ifdef __cplusplus
}
#endif

#endif /* TIMETRIAL_SETTINGS_H */
