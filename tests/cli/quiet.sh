#!/bin/sh
# Calls of hooks that are not in the code before pacer's first period (guest/quiet.h): the code changes while threads, handlers of signals and
# children run it; what is accessed afterwards is looked at, with whole stacks. What is loaded later works as well.
set -eu
redflag=${REDFLAG:?}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC

fail() {
    echo "quiet.sh: $*" >&2
    exit 1
}

# run PROGRAM ARGUMENT: with one seed after the other, until the code was quiet at the start, $times times. Which seeds those are does not
# depend on luck: half of all.
run() {
    seen=0
    for seed in $(seq 30); do
        status=0
        cp "$1" copy
        timeout 100 "$redflag" run -d pacer --rate 0.5 --period 300 --seed "$seed" ./copy "$2" >out 2>&1 || status=$?
        [ "$status" -ne 3 ] || continue
        [ "$status" -eq 66 ] || fail "$1 $2, seed $seed: status $status: $(cat out)"
        if grep '^wrong: ' out; then
            fail "$1 $2, seed $seed"
        fi
        grep -q 'data race' out || fail "$1 $2, seed $seed: no report: $(cat out)"
        for frame in write_shared read_shared main partner; do
            grep -q " $frame " out || fail "$1 $2, seed $seed: $frame is not in the report: $(cat out)"
        done
        seen=$((seen + 1))
        [ "$seen" -lt "$times" ] || return 0
    done
    fail "$1 $2: the code was quiet $seen times"
}

build() { # NAME COMPILER FLAGS...
    name=$1 compiler=$2
    shift 2
    REDFLAG_CC=$compiler "$redflag" cc -g -w -I"$root" "$@" -o "$name" "$here/quiet.c" || fail "$name does not build"
}

build gcc gcc -O2
build gcc-fixed gcc -O1 -no-pie -fno-pie -fno-plt
build clang clang -O2
times=3
run gcc stays
times=1
run gcc-fixed stays
run clang stays
run gcc gone
run gcc divided

# What is loaded later has its calls; nothing is quiet behind the tap, where accesses are counted, or with a rate of 1.
"$redflag" cc -w -I"$root" -O2 -shared -fPIC -o library.so "$root/tests/programs/near-library.c"
"$redflag" cc -w -I"$root" -O2 -o loader "$root/tests/programs/near-dlopen.c" -ldl
"$redflag" run -d pacer --rate 0.5 --seed 3 ./loader ./library.so >out 2>&1 || fail "near-dlopen ends with status $?: $(cat out)"
for options in "--rate 1" "--rate 0.01 --stats"; do
    status=0
    # shellcheck disable=SC2086
    "$redflag" run -d pacer $options ./gcc stays >out 2>&1 || status=$?
    [ "$status" -eq 3 ] || fail "$options: status $status, not 3: $(cat out)"
done

# A program that gives up system calls, and is ended if it makes one of them, goes on: what the first period needs was done before.
cat >confined.c <<'C'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int shared;
static void *work(void *unused)
{
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&mutex);
        shared++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    pthread_t threads[2];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 4; /* there is no such thing here */
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return shared != 10000;
}
C
"$redflag" cc -w -O1 -o confined confined.c
for seed in 1 2 3; do
    status=0
    "$redflag" run -d pacer --rate 0.2 --period 300 --seed $seed ./confined >out 2>&1 || status=$?
    case $status in 0 | 4) ;; *) fail "confined, seed $seed: status $status: $(cat out)" ;; esac
done
