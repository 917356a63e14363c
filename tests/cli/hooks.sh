#!/bin/sh
# The hot hooks keep to their budget of instructions, the library exports what it should and no more, and the calls that are changed at
# the start are exactly the calls of hooks that a disassembler finds.
set -eu
redflag=${REDFLAG:?}
library=$(dirname "$redflag")/lib/libredflag-rt.so.0
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "hooks.sh: $*" >&2
    exit 1
}

[ -e "$library" ] || fail "there is no $library"

# It would be taken for a library whose text has calls of hooks, and be searched at every start.
if readelf -rW "$library" | grep ' __tsan_[a-z_]*\(read\|write\|func\)'; then
    fail "the library refers to a hook by its name"
fi

# -- instructions to the return -----------------------------------------------------------------------------------------------------

objdump -d --no-show-raw-insn -j .text "$library" >text.s
objdump -D --no-show-raw-insn -j .rodata --start-address="0x$(nm "$library" | awk '$3 == "rf_near_begin" { print $1 }')" \
    --stop-address="0x$(nm "$library" | awk '$3 == "rf_near_end" { print $1 }')" "$library" >near.s

objdump -D --no-show-raw-insn -j .rodata --start-address="0x$(nm "$library" | awk '$3 == "rf_near_gates" { print $1 }')" \
    --stop-address="0x$(nm "$library" | awk '$3 == "rf_near_gates_end" { print $1 }')" "$library" >gates.s

# budget FILE LABEL MOST: no more instructions up to the first return, and none that needs the stack or the bus
budget() {
    awk -v label="<$2>:" -v name="$2" -v most="$3" '
        $2 == label { on = 1; next }
        on && NF > 1 {
            count++
            sub(/^ *[0-9a-f]+:\t/, "")
            if ($1 ~ /^(push|pop|call|lock|xchg|leave)/) bad = $0
            if ($1 == "ret") { done = 1; exit }
        }
        END {
            if (!done) { print name ": no return found"; exit 1 }
            if (bad != "") { print name ": " bad; exit 1 }
            if (count > most) { print name ": " count " instructions to the return, not " most; exit 1 }
        }' "$1" || fail "$2 breaks its budget"
}

for size in 1 2 4 8; do
    for kind in read write volatile_read volatile_write read_write; do
        budget text.s "__tsan_$kind$size" 11
        budget near.s "near___tsan_$kind$size" 11
    done
    budget near.s "near___tsan_read$size" 10
done
for wide in read16 write16; do
    budget text.s "__tsan_$wide" 24
    budget near.s "near___tsan_$wide" 24
done
# Three of them are the question whether all lies in one granule; then it goes on as above.
for wide in unaligned_read2 unaligned_read4 unaligned_read8 unaligned_write2 unaligned_write4 unaligned_write8; do
    budget text.s "__tsan_$wide" 28
    budget near.s "near___tsan_$wide" 28
done
budget near.s near___tsan_read_range 22
budget near.s near___tsan_write_range 24
budget text.s __tsan_func_entry 10
budget near.s near___tsan_func_entry 10
budget text.s __tsan_func_exit 7
budget near.s near___tsan_func_exit 7
budget gates.s rf_near_gates 9 # pacer, between two periods

# -- what is exported ---------------------------------------------------------------------------------------------------------------

nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >all
# Every __interceptor_ name is another one of a function that is exported; these are the rest.
sed -n 's/^__interceptor_//p' all | LC_ALL=C sort | LC_ALL=C comm -23 - all >lonely
[ ! -s lonely ] || fail "an __interceptor_ of what is not exported: $(cat lonely)"
[ "$(grep -c '^__interceptor_' all)" -gt 500 ] || fail "the __interceptor_ names are missing"
grep -v '^__interceptor_' all >exported
LC_ALL=C sort -u "$root/tests/cli/hooks.exports" >expected
diff expected exported >difference || fail "the exported symbols are not those of tests/cli/hooks.exports: $(cat difference)"

# -- which code is changed ----------------------------------------------------------------------------------------------------------

# The names of hooks that have a copy.
awk '/<near_/ { sub(/.*<near_/, ""); sub(/>:.*/, ""); print }' near.s >hooks
[ "$(wc -l <hooks)" -ge 31 ] || fail "too few templates: $(cat hooks)"

# compare NAME CODE CHANGED: the bytes in CHANGED must lie in calls and jumps of CODE to hooks, and each of those must have one
compare() {
    objdump -d --show-raw-insn -M suffix "$2" | awk -F '\t' -v name="$1" '
        FILENAME == "hooks" { hook[$0] = 1; next }
        FILENAME == ARGV[2] { sub(/changed /, ""); changed[$0] = 1; bytes++; next }
        NF >= 3 && $3 ~ /<__tsan_[a-z0-9_]*@/ && $3 ~ /^(bnd |notrack |rex[.A-Z]* |addr32 )*(call|jmp)q? / && section !~ /plt/ {
            target = $3
            sub(/.*</, "", target)
            sub(/@.*/, "", target)
            if (!(target in hook)) next
            at = $1
            gsub(/[ :]/, "", at)
            count = split($2, raw, " ")
            expected[at] = count
            sites++
        }
        /^Disassembly of section/ { section = $0 }
        function value(hex,   i, sum) {
            for (i = 1; i <= length(hex); i++) sum = sum * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return sum
        }
        END {
            for (at in changed) there[value(at)] = 1
            for (at in expected) {
                found = 0
                for (i = 0; i < expected[at]; i++)
                    if ((value(at) + i) in there) { found = 1; delete there[value(at) + i] }
                if (!found) { printf "%s: the call at %s was not changed\n", name, at; bad = 1 }
            }
            for (at in there) { printf "%s: the byte at %x was changed, and is in no call of a hook\n", name, at; bad = 1 }
            if (sites < 20 || bytes < sites) { printf "%s: %d calls, %d bytes changed\n", name, sites, bytes; bad = 1 }
            else printf "%s: %d calls\n", name, sites
            exit bad
        }' hooks "$3" - || fail "$1: not exactly the calls of hooks were changed"
}

# variant NAME COMPILER FLAGS...
variant() {
    name=$1 compiler=$2
    shift 2
    REDFLAG_CC=$compiler "$redflag" cc -w -I"$root" "$@" -o "$name" "$root/tests/programs/near-code.c" 2>error || fail "$name: $(cat error)"
    "./$name" --list >changed || fail "$name ends with status $?"
    compare "$name" "$name" changed
    REDFLAG_OPTIONS=patch_calls=0 "./$name" --list >changed && fail "$name: patch_calls=0 does not keep code as it is"
    [ ! -s changed ] || fail "$name: patch_calls=0 changes code"
    return 0
}

variant gcc gcc -O2
variant gcc-O0 gcc -O0
variant gcc-fixed gcc -O2 -no-pie -fno-pie
variant gcc-exports gcc -O1 -Wl,--export-dynamic
variant gcc-lazy gcc -O2 -Wl,-z,lazy
variant gcc-now gcc -O2 -Wl,-z,now
variant gcc-cet gcc -O2 -fcf-protection=full -Wl,-z,ibtplt
variant gcc-cet-now gcc -O2 -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,now
variant gcc-no-plt gcc -O2 -fno-plt
variant gcc-static-libgcc gcc -Os -static-libgcc -ffunction-sections -Wl,--gc-sections
variant clang clang -O2
variant clang-O0 clang -O0
variant clang-Os clang -Os -fno-pie -no-pie
variant clang-no-plt clang -O2 -fno-plt
if command -v ld.lld >/dev/null; then
    variant clang-lld clang -O2 -fuse-ld=lld
    variant gcc-lld gcc -O2 -fuse-ld=lld -Wl,-z,now
fi

# Reads that a write of the same bytes follows lose their calls, but not where they are asked for, or recorded.
covered() {
    sed -n 's/.*; \([0-9]*\) reads are covered.*/\1/p' "$1" | head -n 1
}
REDFLAG_OPTIONS=verbosity=1 ./gcc 2>log || fail "gcc ends with status $?"
[ "$(covered log)" -gt 0 ] || fail "no read is covered by a write: $(cat log)"
REDFLAG_OPTIONS=verbosity=1:read_before_write=1 ./gcc 2>log || fail "gcc ends with status $?"
[ "$(covered log)" -eq 0 ] || fail "read_before_write=1 leaves reads out: $(cat log)"
REDFLAG_OPTIONS=verbosity=1 "$redflag" record -o trace.rft -- ./gcc 2>log || fail "gcc cannot be recorded"
[ "$(covered log)" -eq 0 ] || fail "reads are left out of a recording: $(cat log)"

# Calls that go nowhere near a PLT are left alone: it only has to run.
REDFLAG_CC=gcc "$redflag" cc -w -I"$root" -O2 -mcmodel=large -fno-pie -no-pie -o large "$root/tests/programs/near-code.c" || fail "large does not build"
status=0
./large || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 2 ] || fail "large ends with status $status"

# A library, while it is loaded.
"$redflag" cc -w -I"$root" -O2 -shared -fPIC -o library.so "$root/tests/programs/near-library.c"
"$redflag" cc -w -I"$root" -O2 -o loader "$root/tests/programs/near-dlopen.c" -ldl
./loader ./library.so --list >changed || fail "near-dlopen ends with status $?"
compare library library.so changed
