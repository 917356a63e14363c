#!/bin/sh
# Reports of running programs, from the race to the exit status: what the program may do to the reporter, and the options.
set -eu
redflag=${REDFLAG:?}
library=$(dirname "$redflag")/lib
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "reports.sh: $*" >&2
    [ ! -e err ] || cat err >&2
    exit 1
}

cat >app.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int first, second;
static int turn;

/* What the detector does not see: it must not order the two. */
static __attribute__((no_sanitize("thread"))) void wait_for(int value)
{
    int now;
    do
        __asm__ volatile("movl %1, %0" : "=r"(now) : "m"(turn) : "memory");
    while (now < value);
}
static __attribute__((no_sanitize("thread"))) void go_on(int value)
{
    __asm__ volatile("movl %1, %0" : "=m"(turn) : "r"(value) : "memory");
}

static void *worker(void *argument)
{
    first = 1;
    go_on(1);
    wait_for(2);
    second = 1;
    go_on(3);
    return argument;
}

static volatile int children;
static void child(int signal)
{
    (void)signal;
    children++;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    pthread_t thread;
    if (strcmp(what, "chdir") == 0 && chdir("/") != 0)
        return 9;
    signal(SIGCHLD, child);
    signal(SIGPIPE, SIG_DFL);
    pthread_create(&thread, NULL, worker, NULL);
    pthread_setname_np(thread, "the worker");
    wait_for(1);
    errno = 77;
    first = 2;
    if (errno != 77)
        return 10;
    if (strcmp(what, "close") == 0) { /* as daemons do; and then the numbers are used for something else */
        for (int fd = 3; fd < 2048; fd++)
            close(fd);
        for (int i = 0; i < 1000; i++)
            if (open("/dev/null", O_RDONLY) < 0)
                break;
    }
    if (strcmp(what, "crash") == 0)
        raise(SIGSEGV);
    if (strcmp(what, "quiet") == 0)
        close(2);
    go_on(2);
    wait_for(3);
    second = 2;
    pthread_join(thread, NULL);
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD || children)
        return 11; /* somebody is our child */
    return 3;
}
C
gcc -g -O1 -fsanitize=thread app.c -o app
export LD_LIBRARY_PATH="$library/tsan"

# run STATUS ARGUMENT OPTIONS: runs it, compares the status
run() {
    status=0
    REDFLAG_OPTIONS=$3 timeout 60 ./app "$2" >out 2>err || status=$?
    [ "$status" -eq "$1" ] || fail "app $2 with '$3': exit $status, not $1"
}
count() { [ "$(grep -c "$2" err)" -eq "$1" ] || fail "not $1 times '$2'"; }

run 66 '' ''
count 2 '^WARNING: redflag: data race (pid='
count 1 "Location is global 'first' of size 4"
count 1 "Location is global 'second' of size 4"
count 2 "#0 worker $dir/app.c:"
count 2 "Thread T1 'the worker' (tid=[0-9]*, [a-z]*) created by main thread at:"
count 2 '#0 pthread_create'
count 1 '^redflag: reported 2 warnings$'
run 66 '' report_style=tsan
count 2 '^WARNING: ThreadSanitizer: data race (pid='
count 1 '^ThreadSanitizer: reported 2 warnings$'
if grep -q redflag err; then fail "our name in ThreadSanitizer's words"; fi
run 5 '' exitcode=5
run 3 '' exitcode=0
count 2 WARNING
run 3 '' report_bugs=0
count 0 WARNING
run 66 '' halt_on_error=1
count 1 WARNING
run 134 '' halt_on_error=1:abort_on_error=1
count 1 WARNING

# What the program does to itself.
run 66 close ''
count 2 WARNING
count 2 "#0 worker $dir/app.c:"
count 0 'has ended before its time'
run 66 quiet ''
count 1 WARNING
run 139 crash ''
count 1 '^SUMMARY'
# The reporter ends with the program: it runs in its directory, under its own name.
reporters() {
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/cwd" 2>/dev/null)" != "$dir" ] || grep -x redflag "$process/comm" 2>/dev/null || true
    done
}
tries=0
while [ -n "$(reporters)" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "a reporter is left"
    sleep 0.1
done

# Files: relative ones are meant from where the program started.
run 66 chdir output=here.txt
[ "$(grep -c WARNING here.txt)" -eq 2 ] || fail "output"
run 66 chdir log_path=log
[ "$(cat log.* | grep -c WARNING)" -eq 2 ] || fail "log_path"
run 66 '' log_path=stdout
[ "$(grep -c WARNING out)" -eq 2 ] || fail "stdout"
run 67 '' output=/no/such/directory/x
count 1 '^redflag: /no/such/directory/x: No such file or directory$'
count 2 WARNING # they are shown all the same
run 67 '' output=/dev/full
count 1 'No space left on device'

# Suppressions.
echo 'race:^worker$' >all.supp
run 3 chdir suppressions=all.supp
count 0 WARNING
count 1 '^2 race:^worker\$$'
printf 'race:^worker$\nrase:main\n' >bad.supp
run 67 '' suppressions=bad.supp
count 1 "bad.supp:2: unknown type 'rase'"
run 67 '' suppressions=none.supp
count 1 'none.supp: the suppressions cannot be read'
run 66 '' gen_suppressions=1
grep '^race:' err >own.supp
run 3 '' suppressions=own.supp

# Without a reporter nothing is lost but the names.
cp -rL "$library" alone
export LD_LIBRARY_PATH="$dir/alone/tsan"
run 66 '' ''
count 2 '^WARNING: redflag: data race'
count 1 'was not found or does not start'
grep -q "#0 0x[0-9a-f]* ($dir/app+0x[0-9a-f]*)" err || fail "no module and offset"
REDFLAG_HELPER=$redflag
export REDFLAG_HELPER
run 66 '' external_symbolizer_path=/usr/bin/llvm-symbolizer
count 2 "#0 worker $dir/app.c:"
