#!/bin/sh
# redflag cc --inline: one compiler run, seen from outside; programs whose hooks are inlined report what they report without it, with every
# detector; what cannot be done with them is said.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH
command -v clang >/dev/null || exit 0
[ -e "$(dirname "$REDFLAG")/lib/redflag/hooks.bc" ] || { echo "inline: built without clang or LLVM: skipped"; exit 0; }
export REDFLAG_CC=clang REDFLAG_CXX=clang++
mkdir temporary
export TMPDIR="$scratch/temporary"

fail() {
    echo "inline: $1" >&2
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
    grep -q -- "$1" out || {
        cat out >&2
        fail "'$1' was not said"
    }
}

cat >main.c <<'C'
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include "touch.h"
static jmp_buf back;
struct wide { double d[2]; } __attribute__((packed)) wide[2];
static __attribute__((noinline)) void deep(int n)
{
    if (n)
        deep(n - 1);
    else
        longjmp(back, 1);
    touch();
}
static void *work(void *argument)
{
    pthread_mutex_lock(&lock);
    if (argument == &lock && !setjmp(back))
        deep(20);
    wide[1].d[0] += wide[0].d[1] + 1;
    pthread_mutex_unlock(&lock);
    touch();
    return argument;
}
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, work, &lock);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return wide[1].d[0] != 2;
}
C
cat >touch.h <<'C'
extern int shared;
extern pthread_mutex_t lock;
void touch(void);
C
cat >touch.c <<'C'
#include <pthread.h>
#include "touch.h"
int shared;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static inline void leave(int *locked)
{
    *locked = pthread_mutex_unlock(&lock);
}
void touch(void)
{
#ifndef RACY
    __attribute__((cleanup(leave))) int locked = pthread_mutex_lock(&lock);
#endif
    shared++;
}
C
# What a report says, without what differs from run to run.
places() {
    sed -n 's/^ *\(#[0-9]* .*\) (.*/\1/p; s/^ *\(Write\|Read\|Previous [a-z]*\) of size.*/\1/p' "$1"
}

# -- the same reports ---------------------------------------------------------------------------------------------------------------

for level in -O0 -O2; do
    status 0 "$REDFLAG" cc --inline -Werror -g $level -pthread main.c touch.c -o right
    status 0 ./right
    status 0 "$REDFLAG" cc -g $level -DRACY -pthread main.c touch.c -o called
    status 0 "$REDFLAG" cc --inline -Werror -g $level -DRACY -pthread main.c touch.c -o inlined
    status 66 ./called
    places out >called.places
    status 66 ./inlined
    places out >inlined.places
    grep -q 'touch.c:14' inlined.places || fail "$level: the line of the race is missing: $(cat out)"
    # Which of two accesses comes last is chance; where they are, and how one gets there, is not.
    sort -u called.places >a
    sort -u inlined.places >b
    cmp -s a b || fail "$level: not the same places: $(diff a b)"
    objdump -d inlined | grep -q '<__tsan_cold_write4' || fail "$level: nothing is inlined"
    objdump -d inlined | grep 'call.*<__tsan_\(read\|write\|func\)[^_]*@plt>' && fail "$level: hooks are called"
done

# -- each way to build --------------------------------------------------------------------------------------------------------------

status 0 "$REDFLAG" cc --inline -O2 -g -DRACY -fPIC -c touch.c -MMD
[ "$(tr -d '\\\n' <touch.d | tr -s ' ')" = "touch.o: touch.c touch.h" ] || fail "touch.d says $(cat touch.d)"
status 0 "$REDFLAG" cc --inline -c main.c -o other.o -MD -MF list -MT goal
grep -q '^goal: main.c' list || fail "the list of -MF says $(cat list)"
ar rcs libtouch.a touch.o
status 0 "$REDFLAG" cc --inline other.o -L. -ltouch -pthread -o static
status 66 ./static
status 0 "$REDFLAG" cc --inline -shared -o libdynamic.so touch.o
status 0 "$REDFLAG" cc --inline -fno-pie -no-pie main.c libdynamic.so -Wl,-rpath,. -pthread -o dynamic
status 66 ./dynamic
said 'libdynamic.so'
printf '%s\n' "-g '-DRACY' touch.c" >words
# shellcheck disable=SC2016
status 0 sh -c '"$REDFLAG" cc --inline -pthread -I. @words -x c - -o piped <main.c'
status 66 ./piped
status 0 "$REDFLAG" cc --inline -O1 -DRACY -S touch.c
grep -q 'call.*__tsan_cold_' touch.s || fail "-S has no inlined hooks"
status 0 "$REDFLAG" cc --inline -pthread main.c touch.s -o assembled
status 66 ./assembled
status 0 "$REDFLAG" cc --inline -E main.c
said 'pthread_create'
status 0 "$REDFLAG" cc --inline --version
said clang
cat >race.cc <<'C'
#include <stdexcept>
#include <thread>
struct base { virtual ~base() {} virtual void act() = 0; };
struct derived : base { int value = 0; void act() override { if (++value > 100) throw std::runtime_error("full"); } };
static int caught;
int main()
{
    derived object;
    auto work = [&object] { for (int i = 0; i < 100; i++) try { static_cast<base &>(object).act(); } catch (const std::exception &) { caught++; } };
    std::thread a(work), b(work);
    a.join();
    b.join();
}
C
status 0 "$REDFLAG" c++ --inline -O2 -g race.cc -pthread -o race
status 66 ./race
said 'race.cc:4'

# A resolver runs before the runtime does, and so does what is in .preinit_array.
cat >early.c <<'C'
int counter[4], early;
static int one(void) { return counter[1]; }
static int (*resolve(void))(void) { counter[1]++; return one; }
int number(void) __attribute__((ifunc("resolve")));
static void first(int argc, char **argv) { early += argc + !argv; counter[2] = early; }
static void (*const preinit)(int, char **) __attribute__((section(".preinit_array"), used)) = first;
int main(void) { return number() != 1 || counter[2] != 1; }
C
status 0 "$REDFLAG" cc --inline -O1 early.c -o early
status 0 ./early

# Errors are the compiler's own, and nothing is left behind.
echo 'int f(void) { return x; }' >wrong.c
status 1 "$REDFLAG" cc --inline -c wrong.c
said 'wrong.c:1:22: error:'
[ ! -e wrong.o ] || fail "a source with an error gives an object"
echo old >old.o
status 1 "$REDFLAG" cc --inline -c wrong.c -o old.o
[ ! -e old.o ] || fail "the object of an earlier run stays when there is an error"

# What goes in one step, or stops early.
printf '.globl quiet\nquiet: ret\n' >quiet.s
rm -f touch.o
status 0 "$REDFLAG" cc --inline -c touch.c quiet.s
{ [ -e touch.o ] && [ -e quiet.o ]; } || fail "-c with assembly beside leaves it out"
rm -f touch.o named.o
status 0 "$REDFLAG" cc --inline -c -- touch.c
[ -e touch.o ] || fail "-- is no end of options"
status 0 "$REDFLAG" cc --inline -c touch.c --output=named.o
[ -e named.o ] || fail "--output= is not obeyed"
status 0 "$REDFLAG" cc --inline -pthread -fstack-usage -fsave-optimization-record main.c touch.c -o linked -MMD
sed -n '1s/ .*//p' linked.d | grep -qx linked: || fail "the list of what a program depends on says $(cat linked.d)"
rm -f linked.d
status 0 "$REDFLAG" cc --inline -pthread touch.c main.c -o linked -MMD
sed -n '1s/ .*//p' linked.d | grep -qx linked: || fail "the list of what a program depends on says $(cat linked.d)"
status 0 "$REDFLAG" cc --inline -c touch.c -Xclang -ast-dump
said TranslationUnitDecl
[ -z "$(ls temporary)" ] || fail "files stay: $(ls temporary)"

# -- with every way to look ---------------------------------------------------------------------------------------------------------

for options in detector=djit detector=acculock detector=goldilocks detector=pacer:rate=1 sync=fib sync=spin patch_calls=0 escape=1; do
    status 66 env REDFLAG_OPTIONS=$options ./inlined
    status 0 env REDFLAG_OPTIONS=$options ./right
done
status 0 env REDFLAG_OPTIONS=detector=none ./inlined
status 0 env REDFLAG_OPTIONS=exitcode=0 "$REDFLAG" record -o trace.rft -- ./inlined
status 66 "$REDFLAG" analyze trace.rft

# All registers of the caller stay, those of vectors too: sums in them, with an access of a new epoch between.
cat >registers.c <<'C'
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double values[64];
static long numbers[64];
static void *work(void *argument)
{
    double a = 0, b = 1, c = 2, d = 3, e = 4, f = 5, g = 6, h = 7;
    long i = 0, j = 1, k = 2, l = 3, m = 4, n = 5, o = 6;
    for (int round = 0; round < 300; round++) {
        pthread_mutex_lock(&lock);
        for (int at = 0; at + 8 <= 64; at += 8) {
            double *v = values + at;
            long *w = numbers + at;
            a += v[0], b += v[1], c += v[2], d += v[3], e += v[4], f += v[5], g += v[6], h += v[7];
            i += w[0], j += w[1], k += w[2], l += w[3], m += w[4], n += w[5], o += w[6];
            v[round % 8] = 1 + round % 3;
            w[round % 8] = 1 + round % 5;
        }
        pthread_mutex_unlock(&lock);
    }
    if (argument)
        printf("%g %g %g %g %g %g %g %g %ld %ld %ld %ld %ld %ld %ld\n", a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
    return 0;
}
int main(void)
{
    pthread_t other;
    work(&lock);
    pthread_create(&other, 0, work, 0);
    pthread_join(other, 0);
    work(&lock);
}
C
clang -O2 -pthread registers.c -o native
./native >expected
for flags in -O2 "-O3 -mavx2"; do
    grep -qw avx2 /proc/cpuinfo || [ "$flags" = -O2 ] || continue
    # shellcheck disable=SC2086
    status 0 "$REDFLAG" cc --inline $flags -pthread registers.c -o registers
    status 0 ./registers
    cmp -s out expected || fail "$flags: registers change: $(diff out expected)"
done

# The upper halves stay, too, when the program hears of a report in the midst of the access.
cat >halves.c <<'C'
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
int shared;
static int reports, stage; /* nobody sees the order that this one gives */
void __tsan_on_report(void *report);
void __tsan_on_report(void *report)
{
    reports += report != 0;
    _mm256_zeroall();
}
static void *work(void *argument)
{
    shared = 1;
    __asm__ volatile("movl $1, %0" : "=m"(stage) : : "memory");
    return argument;
}
int main(void)
{
    double sums[4];
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    for (int now = 0; !now; sched_yield())
        __asm__ volatile("movl %1, %0" : "=r"(now) : "m"(stage) : "memory");
    __m256d v = _mm256_set_pd(1, 2, 3, 4);
    __asm__ volatile("" : "+x"(v));
    shared = 2;
    __asm__ volatile("" : "+x"(v));
    _mm256_storeu_pd(sums, v);
    pthread_join(other, 0);
    printf("%d: %g %g %g %g\n", reports, sums[0], sums[1], sums[2], sums[3]);
}
C
if grep -qw avx2 /proc/cpuinfo; then
    status 0 "$REDFLAG" cc --inline -O2 -mavx2 -pthread halves.c -o halves
    status 66 ./halves
    said '^1: 4 3 2 1$'
fi

# Also at a call that is the first of its hook, and was not retargeted: the dynamic linker must have no part in it.
cat >bound.c <<'C'
long where[64];
__attribute__((noinline)) long kept(long *at, long value)
{
    register long three __asm__("r10") = value * 3;
    __asm__ volatile("" : "+r"(three));
    *at = value;
    __asm__ volatile("" : "+r"(three));
    return three;
}
int main(void)
{
    int wrong = 0;
    for (int i = 0; i < 64; i++)
        wrong += kept(&where[i], i) != 3L * i;
    return wrong != 0;
}
C
for flags in -fPIE "-fno-pie -no-pie" -fPIC; do
    # shellcheck disable=SC2086
    status 0 "$REDFLAG" cc --inline -O2 $flags bound.c -Wl,-z,lazy -o bound
    status 0 ./bound
    status 0 env REDFLAG_OPTIONS=patch_calls=0 ./bound
done

# -- the look is short --------------------------------------------------------------------------------------------------------------

# instructions NAME: of the function up to its first return
instructions() {
    objdump -d --no-show-raw-insn "$1.o" | awk '/<look>:/ { on = 1; next } on && /\t/ { n++ } on && /\tret/ { exit } END { print n }'
}

for type in long int char; do
    echo "$type look($type *p) { __asm__ volatile(\"nop\"); return *p; }" >look.c
    status 0 "$REDFLAG" cc --inline -O2 -c look.c -o with.o
    status 0 "$REDFLAG" cc --inline -O2 -c -Xclang -DX -mllvm -tsan-instrument-memory-accesses=0 look.c -o without.o
    most=12 # three of them find the plane and the thread, once in a function
    [ $type = long ] || most=15
    [ $(($(instructions with) - $(instructions without))) -le $most ] ||
        fail "$type: $(instructions with) instructions with the look, $(instructions without) without"
done

# -- what is refused ----------------------------------------------------------------------------------------------------------------

status 2 env REDFLAG_CC=gcc "$REDFLAG" cc --inline -c touch.c
said '--inline needs clang, and gcc is not: set REDFLAG_CC=clang'
status 2 "$REDFLAG" cc --inline --sites list -c touch.c
said '--inline and --sites do not go together'
mkdir -p bare/lib/tsan
cp "$REDFLAG" bare/redflag
cp "$(dirname "$REDFLAG")/lib/libredflag-rt.so.0" bare/lib
status 2 bare/redflag cc --inline -c main.c
said 'hooks.bc is not there: redflag was built without clang or LLVM'

"$REDFLAG" sites inlined >out 2>&1 || true
said 'inlined was compiled with --inline: accesses with inlined hooks are no sites'
chase=$(dirname "$REDFLAG")/lib/chase
status 0 env LD_LIBRARY_PATH="$chase" LD_PRELOAD="$chase/libredflag-rt.so.0" ./right
[ -z "$(ls temporary)" ] || fail "files stay: $(ls temporary)"
