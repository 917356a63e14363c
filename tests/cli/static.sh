#!/usr/bin/env bash
# Static pairs are sound: of programs of tests/programs that race, every race that `generic` finds in a recorded run has its pair. And they
# say nothing where two threads cannot meet. PROGRAMS="heap-* mutex-*" for some, ALL=1 for every one; otherwise a share.
set -eu
redflag=${REDFLAG:?}
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset REDFLAG_OPTIONS TSAN_OPTIONS REDFLAG_CC
fail() {
    echo "static.sh: $*" >&2
    exit 1
}
cd "$dir"

# -- what must be found, and what must not --------------------------------------------------------------------------------------------------
# case NAME 'LINE LINE ...': the pairs by their lines, all of them, of NAME.c; marked in the source by comments /* N */.
check() {
    "$redflag" cc --bitcode -g -pthread -c "$1.c" -o "$1.o"
    "$redflag" static "$1.bc" >"$1.pairs"
    local number line
    sed 's|[^ ]*/||g' "$1.pairs" >found
    grep -n '/\* [a-z] \*/' "$1.c" | while IFS=: read -r line number; do
        # shellcheck disable=SC2001
        number=$(sed 's|.*/\* \([a-z]\) \*/.*|\1|' <<<"$number")
        sed -i "s/\\b$1\\.c:$line\\b/$number/g" found
    done
    grep -v '\.c:' found | awk '{ print $1 < $2 ? $1 $2 : $2 $1 }' | sort -u | tr '\n' ' ' >marked
    [ "$(cat marked)" = "$2" ] || fail "$1: '$(cat marked)' instead of '$2'"
    "$redflag" static -f groups "$1.bc" >"$1.groups"
    awk '$2 == "=" { for (i = 3; i <= NF; i++) member[$1, i - 2] = $i; size[$1] = NF - 2; next }
         { n = split($2, with, ",")
           for (k = 1; k <= n; k++) for (i = 1; i <= size[$1]; i++) for (j = $1 == with[k] ? i : 1; j <= size[with[k]]; j++) {
               a = member[$1, i]; b = member[with[k], j]
               print a, b } }' "$1.groups" | tr ' ' '\n' | paste - - | awk '{ print $1 < $2 ? $1 " " $2 : $2 " " $1 }' | sort >expanded
    awk '{ print $1 < $2 ? $1 " " $2 : $2 " " $1 }' "$1.pairs" | sort | cmp -s - expanded || fail "$1: groups are other pairs"
}

cat >locals.c <<'C'
#include <pthread.h>
#include <stdlib.h>
static void fill(int *at) { *at = 1; /* a */ }
static void *work(void *unused)
{
    int mine[4];
    int *own = malloc(4);
    for (int i = 0; i < 4; i++)
        mine[i] = i; /* b */
    *own = mine[2]; /* c */
    fill(mine);
    fill(own);
    free(own); /* d */
    return unused;
}
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, work, 0);
    pthread_create(&t[1], 0, work, 0);
    return 0;
}
C
check locals '' # nothing that two threads can reach

cat >shared.c <<'C'
#include <pthread.h>
static struct { int one, other; } both;
static _Thread_local int own;
static int *given;
static void (*call)(void);
static void through(void) { both.other = 2; /* b */ }
static void *work(void *argument)
{
    int *place = argument;
    both.one = 1; /* a */
    call();
    *place = 3; /* c */
    own = 4; /* d */
    return 0;
}
int main(void)
{
    pthread_t t;
    int local = 0; /* e */
    call = through; /* f */
    given = &local; /* g */
    both.one = 5; /* h */
    pthread_create(&t, 0, work, given);
    both.one = 6; /* i */
    local = 7; /* j */
    own = 8; /* k */
    pthread_join(t, 0);
    both.one = 9; /* l */
    return local; /* m */
}
C
# One thread, made and joined once: before and after there is nothing beside it; fields are told apart, functions are found by pointer.
check shared 'ai cj '

cat >value.c <<'C'
#include <pthread.h>
#include <stdarg.h>
struct large { int *to; long rest[3]; };
static struct large kept;
static struct large *given;
static int number, named;
static void unnamed(int count, ...)
{
    va_list list;
    va_start(list, count);
    struct large one = va_arg(list, struct large);
    *one.to = 1; /* a */
    va_end(list);
}
static void by_name(struct large copy)
{
    given = &copy; /* g */
    copy.rest[0]++; /* b */
    *copy.to = 2;   /* c */
}
static void *work(void *unused)
{
    struct large mine = { &number, { 0 } };
    unnamed(1, mine);
    kept.to = &named;
    by_name(kept);
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    number = 3;         /* d */
    named = 4;          /* e */
    given->rest[0]++;   /* f */
    return 0;
}
C
# The callee has a copy of its own, and its address is one that others do not know yet; among unnamed arguments is the content itself.
check value 'ad bf ce fg '
"$redflag" static --facts value.facts value.bc >/dev/null
grep -q "^publish .*value\.c:$(grep -n '/\* g \*/' value.c | cut -d: -f1) " value.facts || fail "the address of a copy publishes nothing"

cat >own.c <<'C'
#include <pthread.h>
_Thread_local long own;
long *given;
static void *work(void *unused)
{
    given = &own;
    own++;
    return unused;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    pthread_join(t, 0);
    return 0;
}
C
"$redflag" cc --bitcode -g -pthread -c own.c -o own.o
"$redflag" static --facts own.facts own.bc >/dev/null
grep -q '^publish .*own\.c:6 ' own.facts || fail "the address of what is a thread's own publishes nothing"

cat >loop.c <<'C'
#include <pthread.h>
static int count;
static void *work(void *unused)
{
    count++; /* a */
    return unused;
}
int main(void)
{
    pthread_t t[3];
    count = 1; /* b */
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
    return count; /* c */
}
C
check loop 'aa ac ' # joins in a loop are not counted: conservative

cat >heap.c <<'C'
#include <pthread.h>
#include <stdlib.h>
struct box {
    long one, other, list[4];
};
static void *get(size_t size)
{
    void *block = malloc(size);
    if (!block)
        abort();
    return block;
}
static struct box *box;
static long *apart;
static void *(*maker)(size_t) = malloc;
static void *work(void *given)
{
    box->one = 1; /* a */
    box->list[(long)given] = 2; /* b */
    *apart = 3; /* c */
    return given;
}
int main(void)
{
    pthread_t t;
    long *made = maker(8);
    box = get(sizeof *box);
    apart = get(8);
    pthread_create(&t, 0, work, 0);
    box->other = 4; /* d */
    box->one = 5; /* e */
    *apart = 6; /* f */
    *made = 7; /* g */
    long *inside = &box->other;
    for (int i = 0; i < 1; i++)
        inside--;
    *inside = 8; /* h */
    return 0;
}
C
# Fields are told apart on the heap, and what two calls of a wrapper of malloc() made; not where an index or a loop decides which it is.
check heap 'ae ah bd be bh cf '

cat >fields.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
struct state {
    long count;
    int *shared, *own;
    struct { int *first, *last; } ends;
};
static int variable, another;
static struct { int *first, *second; } table = { &variable, &another };
static void fill(struct state *state)
{
    struct state copy = *state;
    *copy.shared = 1; /* a */
    *copy.own = 2; /* b */
    *state->ends.last = 3; /* c */
    int **any = &copy.shared + state->count;
    *any[0] = 4; /* d */
}
static void *work(void *unused)
{
    int local = 0, last = 0;
    struct state *state = malloc(sizeof *state);
    state->shared = table.first; /* e */
    state->own = malloc(sizeof(int));
    state->ends.first = &local;
    state->ends.last = &last;
    fill(state);
    *state->ends.first = 5; /* f */
    *table.second = 6; /* g */
    return unused;
}
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, work, 0);
    pthread_create(&t[1], 0, work, 0);
    return 0;
}
C
# So are the pointers that fields hold, through copies and what a variable holds at first; not where an index decides which one it is.
check fields 'aa ad dd gg '

cat >outside.c <<'C'
#include <pthread.h>
extern void somewhere(void (*)(int *), int *); /* a library without bitcode */
static int seen;
static void back(int *what)
{
    *what = 1; /* a */
    seen = 1; /* b */
}
int main(void)
{
    int mine = 0; /* c */
    somewhere(back, &mine);
    return mine + seen; /* d */
}
C
check outside 'aa ac ad bb bd ' # it may keep the pointer, and call from threads of its own

# -- several files, bad input ----------------------------------------------------------------------------------------------------------------
printf 'extern int shared; void *work(void *x) { shared++; return x; }\n' >one.c
printf '#include <pthread.h>\nint shared; void *work(void *); int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); return shared; }\n' >two.c
"$redflag" cc --bitcode -g -pthread ./one.c two.c -o both
"$redflag" static one.bc two.bc | grep -q "^$dir/one.c:1 .*two.c:2\$" || fail "two files: $("$redflag" static one.bc two.bc)"
"$redflag" static -f json one.bc two.bc | grep -q '"pairs": \[' || fail "json"
echo no >no.bc
clang-14 -emit-llvm -c one.c -o nolines.bc 2>/dev/null || clang -emit-llvm -c one.c -o nolines.bc
clang-14 -emit-llvm -c two.c -o nolines2.bc 2>/dev/null || clang -emit-llvm -c two.c -o nolines2.bc
for bad in "" none.bc no.bc one.bc "nolines.bc nolines2.bc" "two.bc two.bc" "-f xml one.bc" "-o /none/x one.bc two.bc"; do
    status=0
    # shellcheck disable=SC2086
    "$redflag" static $bad >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "'$bad': exit $status"
    [ -s err ] || fail "'$bad': nothing said"
done

# -- recorded races are among the pairs -------------------------------------------------------------------------------------------------------
share="heap-race heap-write-free global-race stack-* mutex-two-locks rwlock-two-readers cond-before-wait atomics-relaxed-* threads-* ranges-*
    struct-* bytes-*"
[ -z "${ALL:-}" ] || share="*"
good=0 bad=0
set -f
# shellcheck disable=SC2086
files=$(cd "$top/tests/programs" && for pattern in ${PROGRAMS:-$share}; do compgen -G "$pattern.c" || true; done | sort -u)
set +f
said() { sed -n -e '/^\/\//!q' -e "s|^// $2: *||p" "$1"; }
for file in $files; do
    source=$top/tests/programs/$file name=${file%.c}
    [ "$(said "$source" expect)" = race ] || continue
    case $name in fd-*) continue ;; esac # races for descriptors: no memory, and no pair of accesses
    [ -z "$(said "$source" part-of)$(said "$source" library)$(said "$source" libs)" ] || continue
    case "$(said "$source" kind)" in "" | "data race"*) ;; *) continue ;; esac
    flags=$(said "$source" flags | tr '\n' ' ')
    case $flags in *openmp*) continue ;; esac
    # shellcheck disable=SC2086
    "$redflag" cc --bitcode -g -O1 -pthread -I "$top" $flags -o "$name" "$source" 2>log || { [ -n "${ALL:-}" ] && continue; fail "$file: $(cat log)"; }
    REDFLAG_OPTIONS=$(said "$source" options) timeout 100 "$redflag" record -q -o trace.rft -- "./$name" >log 2>&1 </dev/null || true
    "$redflag" analyze -d generic --all-races trace.rft >races 2>&1 || true
    "$redflag" static "$name.bc" | sed 's|[^ ]*/||g' | awk '{ print $1, $2; print $2, $1 }' | sort -u >pairs
    # Not what libraries do inside, which debug information of theirs may show.
    awk '/^    first /{ first = $8 } /^    second /{ print first, $8 }' races | grep -v '[^ ]*/' |
        grep -xE "(${name//-/\\-}\.c|order\.h):[0-9]+ (${name//-/\\-}\.c|order\.h):[0-9]+" | sort -u >wanted || true
    missing=$(comm -13 pairs wanted | head -n 3)
    [ -z "$missing" ] || { echo "static.sh: $name: a race without a pair: $missing" >&2; bad=1; }
    good=$((good + $(wc -l <wanted)))
done
[ "$bad" -eq 0 ] || exit 1
[ "$good" -gt 10 ] || fail "only $good races were compared"
echo "static.sh: $good races have their pair"
