#!/bin/sh
# `redflag sites` lists exactly the calls of hooks that a disassembler finds, with their source lines, and understands every form of name.
set -eu
redflag=${REDFLAG:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "sites.sh: $*" >&2
    exit 1
}

mkdir -p src/deep other
cat >src/deep/work.c <<'END'
struct pair { long a, b, c, d, e, f, g, h; } first, second;
int number;
_Atomic int counter;
int work(int *p)
{
    number = *p;
    first = second;
    counter++;
    return number;
}
void last(void) { counter = 5; }
END
cat >other/work.c <<'END'
int elsewhere;
void other(void);


void other(void)
{
    elsewhere = 1;
}
END
cat >main.c <<'END'
int work(int *p);
void last(void);
void other(void);
int main(void)
{
    int x = 1;
    last();
    other();
    return work(&x) - 1;
}
END

hooks='__tsan_(unaligned_)?(volatile_)?(read|write|read_write)(1|2|4|8|16)|__tsan_(read|write)_range|__tsan_vptr_(read|update)|__tsan_atomic[0-9]+_'
# compare NAME FILE: as many sites, at the same places, as objdump shows calls
compare() {
    objdump -d --no-show-raw-insn -j .text "$2" | awk -v hooks="(call|jmp).*<($hooks)" '
        last && NF { sub(/:.*/, ""); sub(/^ */, ""); print; last = 0 }
        $0 ~ hooks { last = 1 }' |
        while read -r address; do printf '0x%x\n' $((0x$address - 1)); done | LC_ALL=C sort >expected
    "$redflag" sites --no-libraries "$2" | sed 's/.*+//' | LC_ALL=C sort >listed
    [ -s listed ] || fail "$1: no sites"
    diff expected listed >difference || fail "$1: the sites are not those of the disassembly: $(cat difference)"
}

for compiler in gcc clang; do
    for level in -O0 -O2; do
        for more in '' -fcf-protection; do
            flags="-fsanitize=thread -g $level $more"
            # shellcheck disable=SC2086
            REDFLAG_CC=$compiler "$redflag" cc $flags -o app main.c src/deep/work.c other/work.c
            compare "$flags $compiler" app
        done
    done
done

# every form of a name
gcc -fsanitize=thread -g -O1 -o app main.c src/deep/work.c other/work.c
"$redflag" sites ./app >all
awk -F '\t' '$1 ~ /deep\/work.c:6:/' all >line6
[ "$(wc -l <line6)" -eq 2 ] || fail "line 6 reads and writes: $(cat all)"
for name in work.c:6 deep/work.c:6 src/deep/work.c:6 "$(pwd)/src/deep/work.c:6"; do
    "$redflag" sites --at "$name" ./app | grep deep/work.c >found || true
    diff line6 found >/dev/null || fail "$name is not line 6: $(cat found)"
done
"$redflag" sites --at ./src/deep/work.c:6 app | diff line6 - || fail "./ before the path"
[ "$("$redflag" sites --at work.c:7 ./app | cut -f 1 | sed 's/:[0-9]*:[0-9]*$//' | sort -u | wc -l)" -eq 2 ] || fail "line 7 of both files"
name=$(head -n 1 line6 | cut -f 4)
[ "$("$redflag" sites --at "$name" ./app)" = "$(head -n 1 line6)" ] || fail "$name does not name its site"
short=$(printf %.8s "$name")+${name#*+}
[ "$("$redflag" sites --at "$short" ./app)" = "$(head -n 1 line6)" ] || fail "$short does not name its site"
[ "$("$redflag" sites --at "app+${name#*+}" ./app)" = "$(head -n 1 line6)" ] || fail "the module's name and offset"
[ "$("$redflag" sites --at @other ./app | wc -l)" -eq 1 ] || fail "@other"
place=$(head -n 1 line6 | cut -f 1)
"$redflag" sites --at "$place" ./app | grep -q "$name" || fail "$place does not name its site"
"$redflag" sites --format jsonl ./app | python3 -c '
import json, sys
sites = [json.loads(line) for line in sys.stdin]
assert len(sites) == int(sys.argv[1]) and all(s["site"] == s["build_id"] + "+" + s["offset"] for s in sites), sites
assert any(s.get("atomic") and s["op"] == "write" and s["size"] == 4 for s in sites)' "$(wc -l <all)" || fail "JSON"
[ "$("$redflag" sites --count ./app | cut -f 1)" -eq "$(wc -l <all)" ] || fail "--count"

# a library's sites are its program's
gcc -fsanitize=thread -g -O1 -fPIC -shared -o libwork.so src/deep/work.c other/work.c
# shellcheck disable=SC2016
gcc -fsanitize=thread -g -O1 -o user main.c -L. -lwork '-Wl,-rpath,$ORIGIN'
"$redflag" sites --at deep/work.c:6 ./user >found || fail "the library's sites are missing"
[ "$(wc -l <found)" -eq 2 ] || fail "the library's sites: $(cat found)"
if "$redflag" sites --no-libraries --at deep/work.c:6 ./user >found 2>error; then fail "--no-libraries"; fi

# what is wrong is said in one line, with status 2; where nothing is, 1
want=0
expect() {
    status=0
    "$redflag" sites "$@" >out 2>error || status=$?
    [ "$status" -eq "$want" ] || fail "sites $*: status $status, not $want"
    [ "$(wc -l <error)" -eq 1 ] || fail "sites $*: $(cat error)"
}
want=2
expect
expect ./missing
expect main.c
expect --at nonsense ./app
expect --at work.c:0 ./app
expect --format yaml ./app
expect --nothing ./app
head -c 1000 app >damaged
expect ./damaged
want=1
gcc -o plain -x c - <<'END'
int main(void) { return 0; }
END
expect ./plain
expect --at work.c:1000 ./app
