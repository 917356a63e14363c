#!/bin/sh
# fetch.sh DIRECTORY PACKAGE...: the Debian source packages, unpacked as DIRECTORY/PACKAGE. What is there already is kept.
#
# apt gets a configuration, lists and a cache of its own under DIRECTORY/apt, with a line for sources: nothing of the system's is
# changed, and no root is needed. MIRROR says where from; SUITES, of which: what cannot be had of one is looked for in the next, as mirrors drop versions.
set -eu
directory=$1
shift
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
suites=${SUITES:-bookworm trixie}

# look_for PACKAGE...: those that are not there -> $missing
look_for() {
    missing=
    for package; do
        [ -d "$directory/$package" ] || missing="$missing $package"
    done
}

look_for "$@"
[ -n "$missing" ] || exit 0
for tool in apt-get dpkg-source; do
    command -v $tool >/dev/null || {
        echo "bench: $tool is needed to fetch sources: apt-get install apt dpkg-dev" >&2
        exit 1
    }
done

why=

# fetch SUITE PACKAGE...
fetch() {
    suite=$1
    apt=$directory/apt/$1
    shift
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    echo "deb-src ${MIRROR:-http://deb.debian.org/debian} $suite main" >"$apt/sources.list"
    cat >"$apt/apt.conf" <<END
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
Acquire::Retries "3";
Acquire::http::Timeout "30";
END
    export APT_CONFIG="$apt/apt.conf"
    echo "bench: lists of sources of $suite" >&2
    if ! apt-get -q=2 update >"$apt/update.log" 2>&1; then
        why="no lists of sources: $(sed -n 's/^[EW]: //p' "$apt/update.log" | head -n 1)"
        return
    fi
    for package; do
        echo "bench: source of $package" >&2
        rm -rf "${apt:?}/$package"
        mkdir "$apt/$package"
        rm -rf "$directory/$package.new"
        if (cd "$apt/$package" && apt-get -q=2 source --download-only "$package" &&
            dpkg-source --no-check --no-copy -x ./*.dsc "$directory/$package.new") >"$apt/$package.log" 2>&1; then
            mv "$directory/$package.new" "$directory/$package"
        else
            why=$(sed -n 's/^E: //p' "$apt/$package.log" | head -n 1)
        fi
    done
}

for suite in $suites; do
    # shellcheck disable=SC2086 # words
    fetch "$suite" $missing
    look_for "$@"
    [ -n "$missing" ] || exit 0
done
# The others are worth measuring all the same.
echo "bench: left out:$missing: $why; sources from elsewhere may be put into $directory/PACKAGE" >&2
