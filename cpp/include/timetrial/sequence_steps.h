/* A fact of a backend (tt_backend.facts) that is asked again around every segment: how many steps of
 * sequences a layer along time has computed since build(), of all samples, useful or not, in words of digits.
 * It is there from the first of them on. Of several such layers the one counts that computed most. The parent
 * holds what a segment computed against the setting `lengths`. */
#ifndef TIMETRIAL_SEQUENCE_STEPS_H
#define TIMETRIAL_SEQUENCE_STEPS_H

#define TT_SEQUENCE_STEPS_FACT "sequence steps computed"

#endif /* TIMETRIAL_SEQUENCE_STEPS_H */
