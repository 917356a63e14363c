#!/usr/bin/env bash
# redflag run: options, refusals, statuses; redflag doctor.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC

fail() {
    echo "run: $1" >&2
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

cat >race.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
int shared;
static void *work(void *unused)
{
    shared++;
    return unused;
}
int main(int argc, char **argv)
{
    if (argc > 2) {
        pthread_t a, b;
        pthread_create(&a, 0, work, 0);
        pthread_create(&b, 0, work, 0);
        pthread_join(a, 0);
        pthread_join(b, 0);
    }
    puts("the end");
    return argc > 1 ? atoi(argv[1]) : 0;
}
C
gcc -fsanitize=thread -g -pthread race.c -o unmodified
"$REDFLAG" cc -g -pthread race.c -o ours
gcc race.c -o plain
for program in ./unmodified ./ours; do
    status 66 "$REDFLAG" run "$program" 3 race
    said 'data race'
    said 'the end'
    status 3 "$REDFLAG" run -- "$program" 3
    status 0 "$REDFLAG" run -d fasttrack -- "$program"
    status 5 "$REDFLAG" run --exitcode=5 "$program" 0 race
    status 5 "$REDFLAG" run --exitcode 5 "$program" 0 race
    status 66 "$REDFLAG" run --halt-on-error "$program" 0 race
    if grep -q 'the end' out; then fail "--halt-on-error does not halt"; fi
    status 66 "$REDFLAG" run --halt_on_error --no-halt_on_error "$program" 0 race
    said 'the end'
    rm -f report
    status 66 "$REDFLAG" run -o report "$program" 0 race
    if grep -q 'data race' out; then fail "-o writes to the terminal"; fi
    grep -q 'data race' report || fail "-o wrote no report"
    status 66 env REDFLAG_OPTIONS=exitcode=9 "$REDFLAG" run --exitcode=66 "$program" 0 race
    status 9 env REDFLAG_OPTIONS=exitcode=9 "$REDFLAG" run --verbosity=0 "$program" 0 race
done
# Without `run`: a program of ours finds the runtime by itself, and options in the environment.
status 66 ./ours 0 race
status 7 env REDFLAG_OPTIONS=exitcode=7 ./ours 0 race
status 8 env TSAN_OPTIONS=exitcode=8:handle_segv=0 ./ours 0 race
status 7 env TSAN_OPTIONS=exitcode=8 REDFLAG_OPTIONS=exitcode=7 ./ours 0 race
status 67 env REDFLAG_OPTIONS=nonsense=1 ./ours
said "REDFLAG_OPTIONS: unknown option 'nonsense'"
status 0 env TSAN_OPTIONS=nonsense=1 ./ours
said "TSAN_OPTIONS: unknown option 'nonsense'"
status 0 env REDFLAG_OPTIONS=help=1 ./ours
said halt_on_error
cat >defaults.c <<'C'
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "exitcode=44";
}
C
"$REDFLAG" cc -pthread race.c defaults.c -o with_defaults
status 44 ./with_defaults 0 race
status 45 env TSAN_OPTIONS=exitcode=45 ./with_defaults 0 race
gcc -fsanitize=thread -pthread race.c defaults.c -o with_defaults
status 44 "$REDFLAG" run ./with_defaults 0 race

# What cannot work is said, and nothing is run.
refused() { # TEXT COMMAND...
    text=$1
    shift
    status 2 "$@"
    said "$text"
    if grep -q 'the end' out; then fail "'$*' was run all the same"; fi
}
refused 'not instrumented' "$REDFLAG" run ./plain
gcc -static race.c -o static
refused 'statically' "$REDFLAG" run ./static
if command -v clang >/dev/null; then
    clang -fsanitize=thread race.c -o stock
    refused 'runtime is linked into it' "$REDFLAG" run ./stock
fi
mkdir hides
touch hides/libtsan.so.2
gcc -fsanitize=thread race.c -Wl,--disable-new-dtags "-Wl,-rpath,$scratch/hides" -o hidden
refused 'DT_RPATH' "$REDFLAG" run ./hidden
if [ "$(id -u)" -eq 0 ]; then
    cp unmodified privileged
    chown 65534 privileged
    chmod u+s privileged
    refused 'set-user-ID' "$REDFLAG" run ./privileged
fi
refused 'not a program' "$REDFLAG" run ./race.c
status 127 "$REDFLAG" run ./missing
status 127 "$REDFLAG" run no-such-command-anywhere
status 2 "$REDFLAG" run
status 2 "$REDFLAG" run --
refused 'unknown option' "$REDFLAG" run --nonsense ./ours
refused '--format takes one of' "$REDFLAG" run --format=xml ./ours
refused '--detector takes one of' "$REDFLAG" run -d nonsense ./ours
refused 'takes a number' "$REDFLAG" run --exitcode=1000 ./ours
refused 'a value is missing' "$REDFLAG" run --exitcode
# On demand, and through what starts it.
status 0 "$REDFLAG" run --force ./plain
printf '#!/usr/bin/env bash\nexec %s/unmodified 0 race\n' "$scratch" >script
chmod +x script
status 66 "$REDFLAG" run ./script
cp ours "$scratch/found"
status 66 env PATH="$scratch:$PATH" "$REDFLAG" run found 0 race
# An uninstrumented program with an instrumented library.
sed 's/int main/int run_it/' race.c >library.c
gcc -fsanitize=thread -shared -fPIC library.c -o library.so
printf 'int run_it(int, char **);\nint main(int c, char **v) { return run_it(c, v); }\n' >uses.c
gcc uses.c ./library.so -o uses 2>out || fail "$(cat out)"
status 66 "$REDFLAG" run ./uses 0 race
status 0 "$REDFLAG" run --help
for option in $(sed -n 's/^RF_[A-Z]*(\([a-z_]*\),.*/\1/p' "$top/core/run_options.def" | tr _ -); do
    said "--$option"
    grep -q -e "Fl -$option" "$top/doc/man/redflag-run.1" || fail "redflag-run.1 does not tell of --$option"
done

# It starts everywhere.
status 66 setarch -R "$REDFLAG" run ./unmodified 0 race
(ulimit -v 2000000 && status 66 "$REDFLAG" run ./unmodified 0 race) || fail "under ulimit -v"
(ulimit -s unlimited 2>/dev/null && status 66 "$REDFLAG" run ./unmodified 0 race) || fail "without a limit on the stack"
status 66 setarch -L "$REDFLAG" run ./unmodified 0 race
status 66 env -i "$REDFLAG" run ./unmodified 0 race

status 0 "$REDFLAG" doctor ./ours
said 'A run will work here.'
status 1 "$REDFLAG" doctor ./plain
said FAIL
status 2 "$REDFLAG" doctor --nonsense
