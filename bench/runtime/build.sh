#!/bin/sh
# build.sh SOURCES DIRECTORY CC CXX PROGRAM...: builds the programs with these compilers into DIRECTORY/PROGRAM. A program that is
# there already is kept; one that cannot be built is named, and left out.
#
# The libraries that do a program's work are built into it with the same compiler: zlib, libbz2, libevent. Hand-written assembly is
# switched off, so that all variants run the same algorithm and all accesses are seen.
# shellcheck disable=SC2317 # functions are called by names that are put together
set -eu
sources=$(cd "$1" && pwd)
mkdir -p "$2"
directory=$(cd "$2" && pwd)
CC=$3 CXX=$4
export CC CXX
shift 4
here=$(cd "$(dirname "$0")/.." && pwd)
jobs=${JOBS:-$(nproc)}
flags="-O2"
# What automake and its like would make is there; unpacking may have made it look old.
made="AUTOCONF=: AUTOHEADER=: AUTOMAKE=: ACLOCAL=:"

# take PACKAGE: a copy of its sources to build in, and goes there
take() {
    mkdir -p "$directory/work"
    rm -rf "$directory/work/$1"
    cp -a "$sources/$1" "$directory/work/$1"
    cd "$directory/work/$1"
}

# need FILE FUNCTION: a library for the programs that follow
need() {
    [ -e "$directory/work/$1" ] || "build_$2"
}

build_zlib() {
    take zlib
    CFLAGS="$flags" ./configure --static
    make -j"$jobs" libz.a
}

build_bzip2() {
    take bzip2
    make -j"$jobs" CC="$CC" CFLAGS="$flags -D_FILE_OFFSET_BITS=64" libbz2.a
}

build_libevent() {
    take libevent
    CFLAGS="$flags" ./configure --prefix="$directory/work/event" --disable-shared --disable-openssl --disable-samples \
        --disable-libevent-regress --disable-debug-mode --disable-dependency-tracking
    # shellcheck disable=SC2086
    make -j"$jobs" $made install
}

build_pigz() {
    need zlib/libz.a zlib
    take pigz
    z=$directory/work/zlib
    # shellcheck disable=SC2046,SC2086 # words
    $CC $flags -Wno-error -I"$z" -o "$directory/pigz" pigz.c yarn.c try.c \
        $(find zopfli/src/zopfli -name '*.c' ! -name '*_bin.c' ! -name '*_lib.c' ! -name '*_container.c') "$z/libz.a" -lpthread -lm
}

build_pbzip2() {
    need bzip2/libbz2.a bzip2
    take pbzip2
    # shellcheck disable=SC2086
    $CXX $flags -Wno-reserved-user-defined-literal -D_FILE_OFFSET_BITS=64 -D_LARGEFILE64_SOURCE -I"$directory/work/bzip2" -o "$directory/pbzip2" ./*.cpp \
        "$directory/work/bzip2/libbz2.a" -lpthread
}

build_zstd() {
    take zstd
    make -j"$jobs" -C programs zstd CC="$CC" CFLAGS="$flags -DZSTD_DISABLE_ASM=1" ZSTD_NO_ASM=1 ZSTD_LEGACY_SUPPORT=0 HAVE_ZLIB=0 \
        HAVE_LZMA=0 HAVE_LZ4=0 BACKTRACE=0
    cp programs/zstd "$directory/zstd"
}

build_xz() {
    take xz-utils
    CFLAGS="$flags" ./configure --disable-shared --disable-nls --disable-doc --disable-assembler --disable-scripts \
        --disable-dependency-tracking
    # shellcheck disable=SC2086
    make -j"$jobs" $made -C src/liblzma
    # shellcheck disable=SC2086
    make -j"$jobs" $made -C src/xz
    cp src/xz/xz "$directory/xz"
}

build_x264() {
    take x264
    # configure takes the compiler for an unknown one if it is two words
    ./configure --disable-asm --disable-lavf --disable-swscale --disable-ffms --disable-gpac --disable-lsmash --disable-avs --disable-opencl \
        --bit-depth=8 --extra-cflags="$flags"
    make -j"$jobs" x264
    cp x264 "$directory/x264"
}

build_memcached() {
    need event/lib/libevent.a libevent
    take memcached
    CFLAGS="$flags -Wno-error" ./configure --with-libevent="$directory/work/event" --disable-coverage --disable-docs \
        --disable-extstore --disable-dependency-tracking
    # shellcheck disable=SC2086
    make -j"$jobs" $made memcached
    cp memcached "$directory/memcached"
}

build_redis() {
    take redis
    # Its build asks for -O3 -flto=auto only where it is not told otherwise.
    make -j"$jobs" -C src redis-server MALLOC=libc CC="$CC" OPTIMIZATION="$flags" CFLAGS="$flags" BUILD_TLS=no \
        USE_SYSTEMD=no
    cp src/redis-server "$directory/redis"
}

# kernel kernel-NAME or kernel-NAME@PERCENT: of its work
kernel() {
    name=${1#kernel-}
    percent=100
    case $name in *@*) percent=${name#*@} ;; esac
    # shellcheck disable=SC2086
    $CC $flags -DKERNEL_PERCENT="$percent" -I"$here/.." -pthread -o "$directory/$1" "$here/kernels/${name%@*}.c" -lm
}

for program; do
    [ -x "$directory/$program" ] && continue
    echo "bench: building $(basename "$directory")/$program" >&2
    log=$directory/$program.log
    set +e # for the parentheses alone: what is tested by || or if does not end at its first failure
    case $program in
    kernel-*) (set -e; kernel "$program") >"$log" 2>&1 ;;
    *) (set -e; "build_$program") >"$log" 2>&1 ;;
    esac
    set -e
    [ -x "$directory/$program" ] ||
        echo "bench: $program cannot be built with '$CC': $(grep -m1 -i error: "$log" || tail -n 1 "$log") (all of it: $log)" >&2
done
