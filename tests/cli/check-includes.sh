#!/bin/sh
# scripts/check-includes must refuse what the table forbids, and only that.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/core" "$tree/detect" "$tree/replay" "$tree/cli" "$tree/tests" "$tree/attic" "$tree/examples"

fail() {
    echo "check-includes: $1" >&2
    exit 1
}

# verdict FILE INCLUDE: what the script says of a tree with that one line
verdict() {
    printf '#include <stdio.h>\n#include "%s"\n' "$2" >"$tree/$1"
    if "$top/scripts/check-includes" "$tree" >"$tree/output"; then said=allowed; else said=refused; fi
    rm "$tree/$1"
}

while read -r expected file include; do
    verdict "$file" "$include"
    [ "$said" = "$expected" ] || fail "$file including $include was $said"
    [ "$said" = allowed ] || grep -q "^$file:" "$tree/output" || fail "$file: the complaint does not name the file"
done <<'TABLE'
allowed core/a.h core/b.h
refused core/a.h trace/b.h
allowed detect/a.h core/b.h
refused detect/a.h sync/b.h
refused detect/a.h detect.h
refused detect/a.h ../core/b.h
allowed replay/a.c sync/b.h
refused replay/a.c guest/b.h
refused replay/a.c cli/b.h
allowed cli/a.c replay/b.h
refused cli/a.c guest/b.h
allowed tests/a.c guest/b.h
refused attic/a.c core/b.h
allowed examples/a.c b.h
refused examples/a.c ../b.h
refused tests/a.c b.h
TABLE
