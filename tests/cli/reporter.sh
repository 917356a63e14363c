#!/bin/sh
# The reporter, with records written by hand about real programs: inlined calls, position-independent and fixed, stripped, deleted and
# replaced files, C++ names; every kind of report in both styles against golden texts; suppressions, formats and outputs.
set -eu
redflag=${REDFLAG:?}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "reporter.sh: $*" >&2
    exit 1
}

# has TEXT: the last output has a line that is this.
has() { grep -qxF -- "$1" out || { cat out >&2; fail "no line '$1'"; }; }
lacks() { if grep -qF -- "$1" out; then cat out >&2; fail "a line with '$1'"; fi; }

# -- symbols -------------------------------------------------------------------------------------------------------------------------

cat >app.c <<'C'
int shared, array[10];
static int local;
static inline __attribute__((always_inline)) void innermost(int *p)
{
    *p = 1;
    __asm__ volatile(".globl here\nhere:");
}
static inline __attribute__((always_inline)) void middle(int *p)
{
    innermost(p);
}
__attribute__((noinline)) void outer(int *p)
{
    middle(p);
    __asm__ volatile("");
}
int main(void)
{
    outer(&shared);
    __asm__ volatile(".globl after\nafter:");
    return local++ + array[3];
}
C
cat >app.cc <<'C'
namespace space {
template <class T> struct box {
    T value;
    __attribute__((noinline)) void put(T v, const char *)
    {
        value = v;
        __asm__ volatile(".globl here\nhere:");
    }
};
box<int> it;
}
int main()
{
    space::it.put(1, "x");
    return 0;
}
C
gcc -g -O2 -fPIE -pie -Wl,--build-id app.c -o pie
gcc -g -O2 -fno-pie -no-pie -Wl,--build-id app.c -o fixed
g++ -g -O1 -fPIE -pie app.cc -o cxx
cp pie stripped
strip stripped
gcc -g0 -O2 -fPIE -pie app.c -o bare

# at FILE SYMBOL: its address in the file, in hexadecimal
at() { nm "$1" | awk -v name="$2" '$3 == name { print $1 }' | sed 's/^0*/0x/'; }
plus() { printf '0x%x' $(($1 + $2)); }
id() { readelf -n "$1" | awk '/Build ID/ { print $3 }'; }

# record FILE BIAS BUILD-ID PATH: two accesses to `shared` from `here`, called from main
record() {
    here_at=$(at "$1" here)
    after_at=$(at "$1" after)
    cat <<R
redflag 1 hello
pid 42
$options
end
redflag 1 report
kind data-race
certainty certain
module $2 $(plus "$2" 0x100000000) $5 0 $3 $4
access $(plus "$(at "$1" "${6-shared}")" "$5") 4 1 1 now
pc $(plus "$here_at" "$5")
pc $(plus "${after_at:-$here_at}" "$5")
access $(plus "$(at "$1" "${6-shared}")" "$5") 4 0 0 before
pc $(plus "$here_at" "$5")
location global $(plus "$(at "$1" "${6-shared}")" "$5") 0 0 0 
thread 1 0 4711 2 worker
end
redflag 1 finish
end
R
}
options='option report_style redflag'
bias=0x555555550000

record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
offset=$(printf '0x%x' $(($(at pie here) - 1)))
caller=$(printf '0x%x' $(($(at pie after) - 1)))
has "    #0 innermost $dir/app.c:5:8 (pie+$offset)"
has "    #1 middle $dir/app.c:10:5 (pie+$offset)"
has "    #2 outer $dir/app.c:14:5 (pie+$offset)"
has "    #3 main $dir/app.c:19:5 (pie+$caller)"
has "  Location is global 'shared' of size 4 at $(printf '0x%012x' $(($(at pie shared) + bias))) (pie+$(at pie shared))"
has "SUMMARY: redflag: data race $dir/app.c:5:8 in innermost"
has "  Write of size 4 at $(printf '0x%012x' $(($(at pie shared) + bias))) by thread T1 'worker':"

record fixed 0x400000 "$(id fixed)" "$dir/fixed" 0x0 | "$redflag" reporter >out
has "    #2 outer $dir/app.c:14:5 (fixed+$(printf '0x%x' $(($(at fixed here) - 1))))"
has "  Location is global 'shared' of size 4 at $(printf '0x%012x' "$(at fixed shared)") (fixed+$(at fixed shared))"

record cxx $bias - "$dir/cxx" $bias _ZN5space2itE | "$redflag" reporter >out
grep -q '#0 space::box<int>::put(int, char const\*) ' out || { cat out >&2; fail "no C++ name"; }
grep -q "Location is global 'space::it' of size 4 " out || { cat out >&2; fail "no C++ variable"; }

# Without names there is still the module and the offset; and never the names of another file.
record pie $bias - "$dir/stripped" $bias | "$redflag" reporter >out
has "    #0 <null> <null> (stripped+$offset)"
record bare $bias - "$dir/bare" $bias | "$redflag" reporter >out
has "    #0 outer <null> (bare+$(printf '0x%x' $(($(at bare here) - 1))))"
record pie $bias 00112233 "$dir/pie" $bias | "$redflag" reporter >out
has "    #0 <null> <null> (pie+$offset)"
record pie $bias "$(id pie)" "$dir/gone" $bias | "$redflag" reporter >out
has "    #0 <null> <null> (gone+$offset)"

# -- words of frames -------------------------------------------------------------------------------------------------------------------

options="option strip_path_prefix $dir/"
record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
has "    #0 innermost app.c:5:8 (pie+$offset)"
options='option stack_trace_format [%n] %f|%l|%c|%o|%%'
record pie $bias "$(id pie)" "$dir/pie" $bias | sed 's/%n\] %f|%l|%c|%o|%%/%25n] %25f|%25l|%25c|%25o|%25%25/' | "$redflag" reporter >out
has "[0] innermost|5|8|$offset|%"
options='option color always'
record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
grep -q "$(printf '\033\\[1m\033\\[31mWARNING: redflag')" out || fail "no color"

# -- suppressions ----------------------------------------------------------------------------------------------------------------------

printf 'race:nobody\nrace:^innermost$;^main$\n' >some.supp
options="option suppressions $dir/some.supp"
record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
lacks WARNING
has "redflag: Matched 1 suppressions (pid=42):"
has '1 race:^innermost$;^main$'
has "redflag: 1 suppressions matched nothing:"
has "$dir/some.supp:1: race:nobody"
echo 'var:shared' >some.supp
record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
lacks WARNING
echo 'wrong' >some.supp
status=0
record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out 2>err || status=$?
[ "$status" -eq 2 ] || fail "a bad suppression: exit $status"
grep -qF "$dir/some.supp:1: 'wrong' is no suppression" err || fail "$(cat err)"
# What is generated suppresses what it was generated for.
for style in redflag tsan; do
    options="option report_style $style
option gen_suppressions 1"
    record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter | grep '^race:' >some.supp
    options="option suppressions $dir/some.supp"
    record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
    lacks WARNING
    has "redflag: Matched 1 suppressions (pid=42):"
done

# -- formats and files -----------------------------------------------------------------------------------------------------------------

for format in jsonl sarif junit; do
    options="option format $format
option output $dir/found.$format"
    record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
    record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out
done
cat >checker.c <<'C'
#include <jansson.h>
#include <stdio.h>
#include <string.h>
/* checker jsonl FILE: every line is an object. checker sarif FILE: one document, with what version 2.1.0 requires. Prints fingerprints. */
static int bad(const char *what)
{
    fprintf(stderr, "checker: %s\n", what);
    return 1;
}
int main(int argc, char **argv)
{
    json_error_t error;
    if (argc == 3 && strcmp(argv[1], "jsonl") == 0) {
        char line[1 << 16];
        FILE *file = fopen(argv[2], "r");
        while (file && fgets(line, sizeof line, file)) {
            json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
            if (!json_is_object(object))
                return bad(error.text);
            const char *fingerprint = json_string_value(json_object_get(object, "fingerprint"));
            printf("%s %s\n", json_string_value(json_object_get(object, "kind")), fingerprint ? fingerprint : "-");
            json_decref(object);
        }
        return 0;
    }
    json_t *root = json_load_file(argv[2], JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return bad(error.text);
    const char *version = json_string_value(json_object_get(root, "version"));
    json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    json_t *driver = json_object_get(json_object_get(run, "tool"), "driver");
    if (!version || strcmp(version, "2.1.0") != 0 || !json_string_value(json_object_get(driver, "name")))
        return bad("version or driver");
    json_t *rules = json_object_get(driver, "rules"), *results = json_object_get(run, "results"), *result;
    size_t i, j;
    json_array_foreach (results, i, result) {
        json_t *rule = json_array_get(rules, json_integer_value(json_object_get(result, "ruleIndex")));
        const char *id = json_string_value(json_object_get(result, "ruleId"));
        if (!id || strcmp(id, json_string_value(json_object_get(rule, "id"))) != 0)
            return bad("ruleId");
        if (!json_string_value(json_object_get(json_object_get(result, "message"), "text")))
            return bad("message");
        json_t *flows = json_object_get(result, "codeFlows"), *flow;
        if (json_array_size(flows) != 2)
            return bad("codeFlows");
        json_array_foreach (flows, j, flow) {
            json_t *steps = json_object_get(json_array_get(json_object_get(flow, "threadFlows"), 0), "locations");
            if (json_array_size(steps) < 1)
                return bad("threadFlows");
        }
        printf("%s %s\n", id, json_string_value(json_object_get(json_object_get(result, "partialFingerprints"), "redflag/v1")));
    }
    json_decref(root);
    return 0;
}
C
gcc -g checker.c -o checker -ljansson
./checker jsonl found.jsonl >jsonl.list || fail "JSON Lines"
./checker sarif found.sarif >sarif.list || fail "SARIF"
[ "$(grep -c '^data-race ' jsonl.list)" -eq 2 ] || fail "two runs add to one file"
[ "$(grep -c '^summary ' jsonl.list)" -eq 2 ] || fail "summaries"
grep '^data-race ' jsonl.list | cmp -s - sarif.list || fail "fingerprints differ between formats"
# JUnit: one document of three tests, of which the reports of both runs failed. (Python comes with Meson, which other tests need.)
python3 - found.junit <<'PYTHON' || fail "JUnit: $(cat found.junit)"
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
tests = root.findall("./testsuite/testcase")
failures = [test.find("failure") for test in tests]
assert root.tag == "testsuites" and len(tests) == 3 and failures[0] is None, "three tests"
for test, failure in zip(tests[1:], failures[1:]):
    assert failure.get("type") == "data-race" and test.get("name").startswith("data race "), test.get("name")
    assert "WARNING: redflag: data race" in failure.text and "Previous" in failure.text, failure.text
PYTHON
# Another build at other addresses, and lines that moved: the same fingerprint.
{
    echo '/* moved */'
    cat app.c
} >moved.c
mkdir other
cp moved.c other/app.c
gcc -g -O2 -fno-pie -no-pie other/app.c -o other/app
options="option format jsonl
option output $dir/moved.jsonl"
record other/app 0x400000 - "$dir/other/app" 0x0 | "$redflag" reporter >out
./checker jsonl moved.jsonl | grep '^data-race' | cmp -s - "$(sed 1q sarif.list >one && echo one)" || fail "the fingerprint changed"

# A file that is not ours is not touched; a full disk and a missing directory are one line.
echo '{"mine": 1}' >foreign.sarif
for output in foreign.sarif:'not a SARIF file that redflag wrote' none/x:'No such file or directory'; do
    options="option format sarif
option output $dir/${output%%:*}"
    status=0
    record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "${output%%:*}: exit $status"
    grep -qF "${output#*:}" err || fail "$(cat err)"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than a line: $(cat err)"
done
[ "$(cat foreign.sarif)" = '{"mine": 1}' ] || fail "the file was changed"
options='option output /dev/full'
status=0
record pie $bias "$(id pie)" "$dir/pie" $bias | "$redflag" reporter >out 2>err || status=$?
[ "$status" -eq 2 ] || fail "/dev/full: exit $status"
grep -qF 'No space left on device' err || fail "$(cat err)"

# -- every kind, both styles ---------------------------------------------------------------------------------------------------------

for style in redflag tsan; do
    sed "s/STYLE/$style/" "$here/reporter.records" | "$redflag" reporter >out
    diff -u "$here/reporter.$style.golden" out || fail "style $style differs from tests/cli/reporter.$style.golden"
done

# -- what is not a record -------------------------------------------------------------------------------------------------------------

for text in 'redflag 1 report
end
' 'redflag 9 hello
end
' 'hello
end
' 'redflag 1 hello
'; do
    status=0
    printf '%s' "$text" | "$redflag" reporter >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "'$text': exit $status"
    [ "$(wc -l <err)" -eq 1 ] || fail "'$text': $(cat err)"
done
"$redflag" reporter </dev/null || fail "no message is no error"
if "$redflag" reporter x </dev/null 2>err; then fail "an argument"; fi
