/* An output that is also the input (see cli.h). */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

bool rf_cli_same_file(const char *input, const char *output)
{
    struct stat in, out;
    if ((strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &in) : stat(input, &in)) != 0)
        return false;
    if ((strcmp(output, "-") == 0 ? fstat(STDOUT_FILENO, &out) : stat(output, &out)) != 0)
        return false;
    return S_ISREG(in.st_mode) && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}
