#!/bin/sh
# Copies of a size that clang knows, which its instrumentation makes calls, are looked at however the program is built: no pass behind that
# makes moves of them again, which nobody would look at.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH
command -v clang >/dev/null || exit 0
export REDFLAG_CC=clang REDFLAG_CXX=clang++

fail() {
    echo "copies: $1" >&2
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

# `known SIZE HOW`: one thread copies a struct, another writes one of its bytes.
cat >known.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#define COPIES(size)                                                              \
    static struct s##size { char text[size]; } shared##size;                      \
    struct s##size own##size;                                                     \
    static void *copy##size(void *how)                                            \
    {                                                                             \
        switch (*(char *)how) {                                                   \
        case 'c': memcpy(&own##size, &shared##size, size); break;                 \
        case 'm': memmove(&shared##size, &own##size, size); break;                \
        case 's': memset(&shared##size, 1, size); break;                          \
        case '=': own##size = shared##size;                                       \
        }                                                                         \
        return how;                                                               \
    }                                                                             \
    static void *write##size(void *how)                                           \
    {                                                                             \
        shared##size.text[size / 2] = 2;                                          \
        return how;                                                               \
    }
COPIES(8)
COPIES(16)
COPIES(24)
int main(int argc, char **argv)
{
    void *(*both[])(void *) = { copy8, write8, copy16, write16, copy24, write24 };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, both[2 * (atoi(argv[1]) / 8 - 1) + i], argv[argc - 1]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
}
C
# The size is known where it is called from, which is another file; it is less than there is room for.
cat >put.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include "put.h"
char shared[16] = { 0 };
void put(int how, const char *from, size_t size)
{
    switch (how) {
    case 'c': memcpy(shared, from, size); break;
    case 'n': strncpy(shared, from, size); break;
    case 'a': strcat(shared, from); break;
    case 'p': *(char *)mempcpy(shared, from, size - 1) = 0; break;
    case 'f': snprintf(shared, size, "%s", from); break;
    case 'u': memccpy(shared, from, 0, size); break;
    case 'y': strcpy(shared, from); break;
    case 'Y': stpcpy(shared, from); break;
    }
}
C
cat >put.h <<'C'
#include <stddef.h>
extern char shared[16];
void put(int how, const char *from, size_t size);
C
cat >far.c <<'C'
#include <pthread.h>
#include "put.h"
static void *copy(void *how)
{
    static const char text[16] = "fifteen letters", less[12] = "11 letters!";
    switch (*(char *)how) {
    case 'c': put('c', text, 12); break;
    case 'n': put('n', text, 12); break;
    case 'a': put('a', text, 12); break;
    case 'p': put('p', text, 12); break;
    case 'f': put('f', text, 12); break;
    case 'u': put('u', text, 12); break;
    case 'y': put('y', less, 12); break;
    case 'Y': put('Y', less, 12); break;
    }
    return how;
}
static void *write_one(void *how)
{
    shared[9] = 2;
    return how;
}
int main(int argc, char **argv)
{
    pthread_t a, b;
    pthread_create(&a, 0, copy, argv[argc - 1]);
    pthread_create(&b, 0, write_one, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
C

# races NAME: of the two programs that were built
races() {
    for size in 8 16 24; do
        for how in c m s =; do
            status 66 ./known "$size" "$how"
        done
    done
    for how in c n a p f u y Y; do
        status 66 ./far "$how"
    done
}

# build FLAG...
build() {
    status 0 "$REDFLAG" cc -Werror "$@" -pthread known.c -o known
    status 0 "$REDFLAG" cc -Werror "$@" -pthread far.c put.c -o far
}

build -O2
races
if [ -e "$(dirname "$REDFLAG")/lib/redflag/hooks.bc" ]; then
    for level in -O1 -O2; do
        build --inline $level
        races
        build --inline --every-access $level
        races
    done
else
    echo "copies: built without clang or LLVM: --inline is skipped"
fi

echo 'int main(void) { return 0; }' >empty.c
for linker in bfd gold lld; do
    clang -O2 -flto -fuse-ld=$linker empty.c -o empty >/dev/null 2>&1 || {
        echo "copies: clang cannot link with -flto and $linker: skipped"
        continue
    }
    for lto in -flto -flto=thin; do
        build -O2 $lto -fuse-ld=$linker
        races
    done
    build -O2 -flto -fuse-ld=$linker -D_FORTIFY_SOURCE=2
    races
    # Step by step; the last step may be one of its own for each file.
    for file in known far put; do
        status 0 "$REDFLAG" cc -Werror -O2 -flto=thin -c $file.c
    done
    status 0 "$REDFLAG" cc -Werror -O2 -flto=thin -fuse-ld=$linker known.o -pthread -o known
    status 0 "$REDFLAG" cc -Werror -O2 -flto=thin -fuse-ld=$linker far.o put.o -pthread -o far
    races
    [ $linker = lld ] || continue
    status 0 "$REDFLAG" cc -O2 -flto=thin -fuse-ld=lld known.o -pthread -Wl,-plugin-opt=thinlto-index-only -o known
    status 0 "$REDFLAG" cc -Werror -O2 -x ir known.o -c -fthinlto-index=known.o.thinlto.bc -o part.o
    status 0 "$REDFLAG" cc part.o -pthread -o known
    races
done

# This linker knows bitcode when it meets it.
if clang -fuse-ld=lld empty.c -o empty >/dev/null 2>&1; then
    for lto in -flto -flto=thin; do
        for file in known far put; do
            status 0 "$REDFLAG" cc -O2 $lto -c $file.c
        done
        status 0 "$REDFLAG" cc -Werror -fuse-ld=lld known.o -pthread -o known
        status 0 "$REDFLAG" cc -Werror -fuse-ld=lld far.o put.o -pthread -o far
        races
    done
else
    echo "copies: clang has no lld: what it links without -flto is skipped"
fi

# The flag may be the compiler's own, and what is compiled in the same step need have no hooks.
REDFLAG_CC="clang -flto"
build -O2
races
REDFLAG_CC=clang
echo 'int unused_here;' >none.c
echo "known.c:1" >sites.txt
status 0 "$REDFLAG" cc -O2 -flto -c known.c
status 0 "$REDFLAG" cc --sites sites.txt -O2 -flto none.c known.o -pthread -o known
status 66 ./known 16 c

# A word that is read by memcpy() is no call.
echo '#include <string.h>
unsigned word(const char *at) { unsigned word; memcpy(&word, at, 4); return word; }' >word.c
for flags in -O2 "-O2 -flto" "-O2 -flto=thin"; do
    # shellcheck disable=SC2086
    status 0 "$REDFLAG" cc $flags -S -emit-llvm word.c -o word.ll
    ! grep -q 'call .*@memcpy(' word.ll || fail "$flags: a word is copied by a call"
done

# gcc makes moves of such calls after it has put in its hooks: its plugin has hooks for them (plugin/copies.cc).
ls "$(dirname "$REDFLAG")"/lib/redflag/redflag-copies-gcc-*.so >/dev/null 2>&1 || {
    echo "copies: the plugin for gcc was not built: skipped"
    exit 0
}
unset REDFLAG_CC REDFLAG_CXX
for flags in -O1 -O2 -O3 "-O2 --every-access" "-O2 -fnon-call-exceptions" "-O2 -flto" "-O2 -flto -D_FORTIFY_SOURCE=2"; do
    # shellcheck disable=SC2086
    build $flags
    races
done
for file in known far put; do
    status 0 "$REDFLAG" cc -Werror -O2 -flto -c $file.c
done
status 0 "$REDFLAG" cc -Werror -O2 -flto known.o -pthread -o known
status 0 "$REDFLAG" cc -Werror -O2 -flto far.o put.o -pthread -o far
races
# `value HOW`: a structure goes into a call by value, or is what one returns.
cat >value.c <<'C'
#include <pthread.h>
struct s { char text[64]; } shared, table[4];
int sum;
#define APART __attribute__((noinline, noipa))
APART int take(struct s s) { return s.text[5]; }
APART int take_more(int count, ...) { return count; }
APART struct s give(int i) { struct s s = { { 0 } }; s.text[3] = (char)i; return s; }
static void *copy(void *how)
{
    switch (*(char *)how) {
    case 't': sum = take(shared); break;
    case 'v': sum = take_more(1, shared); break;
    case 'g': shared = give(3); break;
    case 'i': table[sum] = give(3); break;
    case 'n': { struct s own = give(1); sum = take(own); }
    }
    return how;
}
static void *change(void *how)
{
    if (*(char *)how != 'n')
        shared.text[3] = table[0].text[3] = 2;
    return how;
}
int main(int argc, char **argv)
{
    pthread_t a, b;
    void *how = argv[argc - 1];
    pthread_create(&a, 0, copy, how);
    pthread_create(&b, 0, change, how);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return shared.text[0] + table[0].text[0]; /* else nobody would read them */
}
C
cp value.c value.cc
for flags in -O0 -O1 -O2 "-O2 --every-access" "-O2 -flto"; do
    for file in "cc value.c" "c++ -fnon-call-exceptions value.cc"; do
        # shellcheck disable=SC2086
        status 0 "$REDFLAG" ${file% *} -Werror $flags ${file##* } -pthread -o value
        for how in t v g i; do
            status 66 ./value $how
        done
        status 0 ./value n
    done
done
# Through pointers, of which only the size is known; what is only the function's own needs none, nor does what is not to be looked at.
cat >through.c <<'C'
#include <string.h>
void copy(char *to, const char *from) { memcpy(to, from, 24); }
void fill(char *to) { memset(to, 0, 12); }
void name(char *to) { strcpy(to, "eleven more"); }
int same(const char *one, const char *other) { return !memcmp(one, other, 16); }
int own(int i) { char table[24]; memset(table, 7, sizeof table); return table[i % 24]; }
__attribute__((no_sanitize("thread"))) void unseen(char *to, const char *from) { memcpy(to, from, 24); }
C
status 0 "$REDFLAG" cc -Werror -O2 -S through.c -o through.s
has() {
    sed -n "/^$1:/,/^\.LFE/p" through.s | grep -c "$2" || true
}
for function in "copy read_range 1" "copy write_range 1" "fill write_range 1" "name write_range 1" "same read_range\|tsan_read16 2" \
    "own _range 0" "unseen tsan 0"; do
    # shellcheck disable=SC2086
    set -- $function
    [ "$(has "$1" "$2")" = "$3" ] || fail "$1 has $(has "$1" "$2") checks ($2) instead of $3"
done
