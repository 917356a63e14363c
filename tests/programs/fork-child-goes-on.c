// expect: none
// runs: 10
// A child of a fork uses all that its parent did; there is no race between processes.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

static int data;

int main(void)
{
    for (int i = 0; i < 10; i++) {
        data = i;
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            data++;
            char *memory = malloc(1000);
            memory[0] = (char)data;
            free(memory);
            exit(data == i + 1 ? 3 : 4);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child);
        MUST(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        MUST(data == i);
    }
    return 0;
}
