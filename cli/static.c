/* redflag static: becomes redflag-static, which lies beside the runtime if it was built (static/main.c). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/places.h"

int rf_cli_static(int argc, char **argv)
{
    struct rf_places places;
    char path[PATH_MAX + 32];
    (void)argc;
    if (!rf_cli_places(&places, "redflag static"))
        return RF_EXIT_USAGE;
    snprintf(path, sizeof path, "%s/redflag/redflag-static", places.lib);
    execv(path, argv);
    fprintf(stderr,
            errno == ENOENT ? "redflag static: %s is not there: redflag was built without LLVM (Debian: llvm-14-dev)\n"
                            : "redflag static: %s cannot be run\n",
            path);
    return RF_EXIT_USAGE;
}
