#!/usr/bin/env bash
# redflag record: what is recorded, and what is left when the program or the disk comes to an end.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC

fail() {
    echo "record: $1" >&2
    exit 1
}

# status EXPECTED COMMAND...
status() {
    expected=$1 got=0
    shift
    "$@" >out 2>&1 || got=$?
    [ "$got" -eq "$expected" ] || {
        cat out >&2
        fail "'$*' ended with $got instead of $expected"
    }
}

said() {
    grep -qF -- "$1" out || {
        cat out >&2
        fail "'$1' was not said"
    }
}

cat >program.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int shared, rounds = 1000, endless;
static int cells[4096];
static unsigned seed;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *race(void *unused)
{
    shared++;
    return unused;
}
/* Under the mutex. One that is endless leaves its number in a file, and goes on until that is gone, and then to its end. */
static int goes_on(void)
{
    static int told;
    if (endless && !told++) {
        FILE *file = fopen("begun.new", "w");
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        rename("begun.new", "begun");
    }
    return endless && access("begun", F_OK) == 0;
}
static void *busy(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        if (i == 50 && goes_on())
            i = 0;
        for (int k = 0; k < 1000; k++)
            cells[(seed = seed * 1103515245 + 12345) >> 16 & 4095]++; /* packs badly */
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
static void two(void *(*run)(void *))
{
    pthread_t a, b;
    pthread_create(&a, 0, run, 0);
    pthread_create(&b, 0, run, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
static void *sleeper(void *unused)
{
    usleep(200000);
    return unused;
}
int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "quiet")) /* the recorder's variable and descriptor are not seen */
        return getenv("REDFLAG_RECORDING") != 0 || fcntl(3, 1) != -1;
    if (!strcmp(how, "many")) {
        static pthread_t threads[500];
        for (int i = 0; i < 500; i++)
            pthread_create(&threads[i], 0, sleeper, 0);
        for (int i = 0; i < 500; i++)
            pthread_join(threads[i], 0);
        return 0;
    }
    if (!strcmp(how, "fork")) {
        int result;
        pid_t child = fork();
        if (child == 0) {
            two(race);
            _exit(5);
        }
        two(busy);
        waitpid(child, &result, 0);
        return WEXITSTATUS(result);
    }
    endless = !strcmp(how, "endless");
    if (!strcmp(how, "long"))
        rounds = 6000;
    two(!strcmp(how, "busy") || !strcmp(how, "long") || endless ? busy : race);
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "crash"))
        *(volatile int *)8 = 1;
    if (!strcmp(how, "_exit"))
        _exit(7);
    puts("the end");
    return argc > 2 ? atoi(argv[2]) : 0;
}
C
gcc -fsanitize=thread -g -pthread program.c -o unmodified
"$REDFLAG" cc -g -pthread program.c -o ours
for program in ./unmodified ./ours; do
    status 3 "$REDFLAG" record -o t.rft -- $program race 3
    said 'the end'
    said 'events of 3 threads'
    status 66 "$REDFLAG" analyze -d fasttrack t.rft
    said 'program.c:16 race'
    status 0 "$REDFLAG" record -q -o t.rft $program busy
    if grep -q 'events of' out; then fail "-q is not quiet"; fi
    status 0 "$REDFLAG" analyze -d fasttrack t.rft
    status 0 "$REDFLAG" record -o t.rft $program quiet
done
status 0 "$REDFLAG" trace check t.rft
status 0 "$REDFLAG" record -o t.std ./ours busy
status 0 "$REDFLAG" analyze t.std
# However it ends, what it did is there.
status 137 "$REDFLAG" record -o t.rft ./ours kill
status 66 "$REDFLAG" analyze t.rft
status 134 "$REDFLAG" record -o t.rft ./ours abort
status 66 "$REDFLAG" analyze t.rft
status 139 "$REDFLAG" record -o t.rft ./ours crash
status 66 "$REDFLAG" analyze t.rft
status 7 "$REDFLAG" record -o t.rft ./ours _exit
status 66 "$REDFLAG" analyze t.rft
# start: `ours endless`, recorded, which is in the midst of its work; $recorder and $program are the two
start() {
    rm -f begun
    "$REDFLAG" record -o t.rft ./ours endless >out 2>&1 &
    recorder=$!
    until [ -e begun ]; do
        kill -0 $recorder || fail "it ended before it was in the midst of its work: $(cat out)"
        sleep 0.1
    done
    program=$(cat begun)
}
# From outside, in the middle.
start
kill -KILL "$program"
got=0
wait $recorder || got=$?
[ "$got" -eq 137 ] || fail "killed from outside, it ended with $got"
status 0 "$REDFLAG" analyze t.rft
# The child of a fork is not recorded, and goes on.
status 5 "$REDFLAG" record -o t.rft ./ours fork
status 0 "$REDFLAG" analyze t.rft
status 0 "$REDFLAG" record -o t.rft ./ours many
said 'events of 501 threads'
status 0 "$REDFLAG" analyze t.rft
# No more room: said in one line, the program goes on, and what is there can be read.
if [ -w /dev/full ]; then
    status 2 "$REDFLAG" record -o /dev/full ./ours long
    said 'the end'
    said 'No space left on device'
    [ "$(grep -c '^redflag' out)" -eq 1 ] || fail "more than one line about a full disk"
fi
(
    ulimit -f 4000
    status 2 "$REDFLAG" record -o t.rft ./ours long
) || fail "under ulimit -f"
said 'the end'
said 'File too large'
status 3 "$REDFLAG" analyze t.rft
# Through what starts it.
printf '#!/usr/bin/env bash\n%s/ours race\nexit 9\n' "$scratch" >script
chmod +x script
status 9 "$REDFLAG" record -o t.rft ./script
status 66 "$REDFLAG" analyze t.rft
# A recorder that is gone does not hold up the program.
start
kill -KILL $recorder
wait $recorder || true
rm begun
for _ in $(seq 1000); do
    if grep -q 'the end' out; then break; fi
    sleep 0.1
done
grep -q 'the end' out || { kill -KILL "$program" || true; fail "the program hangs without its recorder"; }
status 3 "$REDFLAG" analyze t.rft
status 0 "$REDFLAG" record -q -o t.rft ./ours busy
status 0 "$REDFLAG" simulate t.rft
said 'races       none'

# Where the built-in detector goes on beside the recorder, an access is recorded once, and as it was: also one that it takes in two steps.
cat >sixteen.c <<'C'
#include <pthread.h>
static volatile __int128 cells[8];
static void *nothing(void *unused)
{
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    for (int i = 0; i < 8; i++)
        cells[i] = i;
    return pthread_join(thread, NULL);
}
C
"$REDFLAG" cc -w -O1 -no-pie sixteen.c -o sixteen
cells=$(nm sixteen | sed -n 's/^0*\([0-9a-f]*\) b cells$/\1/p')
for detector in acculock multilock pacer:rate=1 fasttrack; do
    status 0 env REDFLAG_OPTIONS=detector=$detector "$REDFLAG" record -q -o t.std ./sixteen
    for i in 0 16 32 48 64 80 96 112; do
        printf 'w(0x%x:16)\n' $((0x$cells + i))
    done >expected
    cut -d'|' -f2 t.std | grep -iE "^[rw]\(0x($(seq 0 8 120 | while read -r i; do printf '%x|' $((0x$cells + i)); done)none):" >got || true
    diff expected got || fail "$detector: not these accesses"
done

status 2 "$REDFLAG" record
status 2 "$REDFLAG" record -o
status 2 "$REDFLAG" record -o /nonexistent/t.rft ./ours
status 127 "$REDFLAG" record -o t.rft ./missing
status 2 "$REDFLAG" record -o t.rft --nonsense ./ours
# Options of `redflag run`, with their values behind them or in them.
status 0 "$REDFLAG" record -q -d multilock -o t.rft ./sixteen
status 0 "$REDFLAG" record -d pacer --rate 1 -q -o t.rft --force -- ./sixteen
status 0 "$REDFLAG" record -q -dacculock -o t.rft --rate=1 ./sixteen
status 2 "$REDFLAG" record -o t.rft -d
said 'a value is missing after -d'
status 2 "$REDFLAG" record -o t.rft -d nonsense ./sixteen
gcc -pthread program.c -o plain
status 2 "$REDFLAG" record -o t.rft ./plain
status 2 "$REDFLAG" record -o t.rft --force ./plain
said 'nothing was recorded'
status 0 "$REDFLAG" record --help
