/* The sites of a program and of all libraries that it is loaded with: sites/list.h. */
#ifndef RF_CLI_PROGRAM_SITES_H
#define RF_CLI_PROGRAM_SITES_H

#include "sites/list.h"

/* Adds those of the file, and if it is a program and `libraries`, of its libraries too, except the runtime. One with inlined hooks is
 * named in a line. False, with one line for
 * the user, if the file itself cannot be read. */
bool rf_program_sites(struct rf_site_list *list, const char *path, bool libraries, const char *who);

#endif
