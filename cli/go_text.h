/* What all that is put into Go's file of hooks needs: numbers of go/layout.h as texts; and whether the address AX has a history. */
#ifndef RF_CLI_GO_TEXT_H
#define RF_CLI_GO_TEXT_H

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

#define IF_TRACKED                                                                                                          \
    "\tCMPQ\tAX, runtime·racearenastart(SB)\n"                                                                             \
    "\tJCS\trf_data\n"                                                                                                      \
    "\tCMPQ\tAX, runtime·racearenaend(SB)\n"                                                                               \
    "\tJCS\trf_cell\n"                                                                                                      \
    "rf_data:\n"                                                                                                            \
    "\tCMPQ\tAX, runtime·racedatastart(SB)\n"                                                                              \
    "\tJCS\trf_slow\n"                                                                                                      \
    "\tCMPQ\tAX, runtime·racedataend(SB)\n"                                                                                \
    "\tJCC\trf_slow\n"                                                                                                      \
    "rf_cell:\n"

#endif
