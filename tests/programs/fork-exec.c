// expect: none
// runs: 10
// fork and exec, vfork and exec, posix_spawn, system and popen.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

static int wait_for(pid_t child)
{
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
        _exit(1);
    }
    MUST(wait_for(child) == 4);
    child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
        _exit(1);
    }
    MUST(wait_for(child) == 5);
    char *arguments[] = { "sh", "-c", "exit 6", NULL }, *environment[] = { NULL };
    MUST(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environment) == 0);
    MUST(wait_for(child) == 6);
    MUST(WEXITSTATUS(system("exit 7")) == 7);
    FILE *pipe = popen("echo hello", "r");
    char line[16] = "";
    MUST(pipe && fgets(line, sizeof line, pipe) && line[0] == 'h');
    MUST(pclose(pipe) == 0);
    return 0;
}
