#!/bin/sh
# `redflag cc --sites FILE` instruments what holds a candidate site, and nothing else; `redflag chase` finds the race in what it builds.
set -eu
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS

fail() {
    echo "cc-sites.sh: $*" >&2
    exit 1
}

mkdir src include tmp
export TMPDIR="$dir/tmp"
cat >include/inside.h <<'END'
extern int shared;
static inline void add(int n)
{
    shared += n;
}
static inline void unused_here(int *p)
{
    *p = 1;
}
END
cat >src/racy.c <<'END'
#include <pthread.h>
#include <unistd.h>
#include "tests/programs/order.h"
int shared, other, work[1000];
int busy(void)
{
    int sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += work[i] * i;
    return sum;
}
static void *first(void *x)
{
    for (int i = 0; i < 200; i++, usleep(500))
        shared = i;
    reach(1);
    return x;
}
static void *second(void *x) /* for as long as the first, however late that begins: it waits for us */
{
    for (int i = 0; present_stage() < 1; i++, usleep(500))
        shared = -i;
    return x;
}
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, NULL, first, NULL);
    pthread_create(&b, NULL, second, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    other = busy() & 0;
    return other;
}
END
cat >src/plain.c <<'END'
int numbers[10];
int plain(int n)
{
    return numbers[n]++;
}
END
cat >src/user.c <<'END'
#include "inside.h"
int mine;
void use(void)
{
    add(3);
    mine = 4;
}
void more(void)
{
    mine = 5;
}
END
cat >src/class.cc <<'END'
struct counter {
    int value;
    void up() { value++; }
    void down();
};
void counter::down()
{
    value--;
}
counter one;
template <class T> void both(T *x)
{
    x->up();
    x->down();
}
void call() { both(&one); }
END

# functions FILE: those that hold sites
functions() {
    "$redflag" sites --no-libraries "$1" 2>/dev/null | cut -f 2 | sort -u | tr '\n' ' '
}

for compiler in gcc clang; do
    case $compiler in gcc) plus=g++ ;; *) plus=clang++ ;; esac
    export REDFLAG_CC=$compiler REDFLAG_CXX=$plus
    cat >list <<'END'
# the race, as one pair
src/racy.c:15,racy.c:22
END
    "$redflag" cc --sites list -g -O1 -c -o plain.o src/plain.c
    "$redflag" cc --sites list -g -O1 -c -o racy.o -I"$root" src/racy.c
    ! nm plain.o | grep -q __tsan_ || fail "$compiler: a file without a candidate is instrumented"
    nm racy.o | grep -q __tsan_write4 || fail "$compiler: the file of the candidates is not instrumented"
    "$redflag" cc --sites list -g -O1 -o app racy.o plain.o
    [ $compiler = gcc ] || [ "$(functions app)" = "first second " ] || fail "clang: hooks in $(functions app)"
    status=0
    timeout 100 "$redflag" chase --pair racy.c:15,racy.c:22 --delay 20s --max-overhead 100% --least 60min ./app 2>err || status=$?
    [ $status -eq 66 ] || fail "$compiler: the race was not found: $status $(cat err)"
    # compiled and linked at once
    "$redflag" cc --sites list -g -O1 -o app -I"$root" src/racy.c
    [ $compiler = gcc ] || [ "$(functions app)" = "first second " ] || fail "clang, at once: hooks in $(functions app)"
    [ -n "$(functions app)" ] || fail "$compiler: nothing is instrumented"

    # a line of a header is in every file that includes it
    echo 'include/inside.h:4' >list
    "$redflag" cc --sites=list -g -O2 -fPIC -Iinclude -c -o user.o src/user.c
    "$redflag" cc --sites=list -g -O2 -Iinclude -c -o racy.o -I"$root" src/racy.c
    nm user.o | grep -q __tsan_ || fail "$compiler: the header's line is not instrumented"
    ! nm racy.o | grep -q __tsan_ || fail "$compiler: racy.c does not include it"
    "$redflag" cc -shared -o user.so user.o
    case $compiler:$(functions user.so) in
    clang:"add " | gcc:*) ;;
    *) fail "$compiler: hooks in $(functions user.so)" ;;
    esac

    # C++: a member, also of a template; and by the name of a function
    echo 'class.cc:8' >list
    "$redflag" c++ --sites list -g -O1 -fPIC -c -o class.o src/class.cc
    "$redflag" c++ -shared -o class.so class.o
    case $compiler:$(functions class.so) in
    clang:"counter::down() " | gcc:*) ;;
    *) fail "$compiler: hooks in $(functions class.so)" ;;
    esac
    "$redflag" sites --at class.cc:8 ./class.so >/dev/null || fail "$compiler: the site itself is missing"
    echo '@more' >list
    "$redflag" cc --sites list -g -O1 -fPIC -Iinclude -c -o user.o src/user.c
    "$redflag" cc -shared -o user.so user.o
    [ $compiler = gcc ] || [ "$(functions user.so)" = "more " ] || fail "@more: $(functions user.so)"

    # what `redflag sites` prints is a list too
    "$redflag" cc -g -O1 -o app -I"$root" src/racy.c
    "$redflag" sites --at racy.c:15 ./app >list
    "$redflag" cc --sites list -g -O1 -c -o racy.o -I"$root" src/racy.c
    nm racy.o | grep -q __tsan_write4 || fail "$compiler: a list of sites"
    # errors of the source are the compiler's own
    echo 'int x = ;' >bad.c
    echo 'bad.c:1' >list
    if "$redflag" cc --sites list -c -o bad.o bad.c 2>err; then fail "$compiler: bad.c compiles"; fi
    grep -q 'bad.c:1' err || fail "$compiler: $(cat err)"
    [ -z "$(ls tmp)" ] || fail "$compiler: left behind: $(ls tmp)"
done

# without any standard descriptor
echo 'racy.c:15' >list
"$redflag" cc --sites list -g -O1 -c -o plain.o src/plain.c <&- >&- 2>&-
! nm plain.o | grep -q __tsan_ || fail "a file without a candidate is instrumented, without standard descriptors"

# a read that a write to the same place follows has a hook of its own, in its own line; a call that compiles nothing has no option too many
cat >reads.c <<'C'
int from, to;
void none(void);
void take(void)
{
    to = from;
    from = 1;
    none();
}
C
printf 'void none(void) { }\nint main(void) { return 0; }\n' >none.c
echo 'reads.c:5' >list
for option in --bitcode '--sites list'; do
    # shellcheck disable=SC2086
    for compiler in clang gcc; do
        REDFLAG_CC=$compiler "$redflag" cc $option -Werror -g -O2 -fPIC -c -o reads.o reads.c
        REDFLAG_CC=$compiler "$redflag" cc $option -Werror -g -O2 -o reads reads.o none.c
        REDFLAG_CC=$compiler "$redflag" cc $option -Werror -o reads.so -shared reads.o
        "$redflag" sites --no-libraries --at reads.c:5 ./reads | grep -q 'read of 4 bytes' || fail "$compiler $option: $("$redflag" sites --no-libraries ./reads)"
    done
    # shellcheck disable=SC2086
    REDFLAG_CC="clang -mllvm -tsan-instrument-read-before-write" "$redflag" cc $option -Werror -g -O2 -fPIC -c -o reads.o reads.c
    # said in a response file: it is not said again
    echo '-mllvm -tsan-instrument-read-before-write -g -O2' >options
    # shellcheck disable=SC2086
    REDFLAG_CC=clang "$redflag" cc $option -Werror -fPIC -c -o reads.o @options reads.c || fail "$option: the option of a response file"
    # a compiler that knows no such option
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nfor word; do case $word in *-instrument-*) echo "unknown: $word" >&2; exit 1 ;; esac; done\nexec clang "$@"\n' >clang-old
    chmod +x clang-old
    # shellcheck disable=SC2086
    REDFLAG_CC=./clang-old "$redflag" cc $option -Werror -g -O2 -fPIC -c -o reads.o reads.c || fail "$option: an old compiler"
    nm reads.o | grep -q __tsan_write4 || fail "$option: an old compiler instruments nothing"
done

# nothing tells where functions begin and end, also in those that hold no candidate: chase unwinds
echo 'racy.c:15' >list
for compiler in clang gcc; do
    REDFLAG_CC=$compiler "$redflag" cc --sites list -g -O1 -c -o racy.o -I"$root" src/racy.c
    nm racy.o | grep -q __tsan_write4 || fail "$compiler: the candidate is not instrumented"
    ! nm racy.o | grep -q __tsan_func || fail "$compiler: entries and exits are told"
    REDFLAG_CC=$compiler "$redflag" cc -g -O1 -c -o racy.o -I"$root" src/racy.c
    nm racy.o | grep -q __tsan_func_entry || fail "$compiler: entries are not told without --sites"
done

# a compiler that goes by what it was called with, as ccache is one, is told that the list has changed
# shellcheck disable=SC2016
printf '#!/bin/sh\ncat "$CCACHE_EXTRAFILES" >told 2>/dev/null\nexec clang "$@"\n' >caching
chmod +x caching
echo '@first' >list
REDFLAG_CC=./caching "$redflag" cc --sites list -g -O1 -I"$root" -c -o racy.o src/racy.c
{ grep -qx 'fun:second' told && ! grep -qx 'fun:first' told; } || fail "the list that a cache must read: $(cat told)"

refused() {
    status=0
    "$redflag" cc "$@" 2>err || status=$?
    [ "$status:$(wc -l <err)" = 2:1 ] || fail "cc $*: $status $(cat err)"
}
refused --sites none -c src/plain.c
refused -c src/plain.c --sites
echo 'nonsense' >list
refused --sites list -c src/plain.c
