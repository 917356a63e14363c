/* The one detector besides FastTrack that a program has inside: go/detectors.h. */
#ifndef RF_GO_OTHER_H
#define RF_GO_OTHER_H

struct rf_online;
extern const struct rf_online *const rf_go_other;

#endif
