/* Numbers of the command line. */
#include <stdlib.h>

#include "cli/cli.h"

bool rf_cli_number(const char *text, double least, double most, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= least && *value <= most;
}
