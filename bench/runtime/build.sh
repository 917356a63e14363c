#!/bin/sh
# build.sh SOURCES DIRECTORY CC CXX LINK PROGRAM...: builds the programs with these compilers into DIRECTORY/PROGRAM. LINK is given to
# link steps alone ("" for none). A program that is there already is kept; one that cannot be built is named, and left out.
#
# The libraries that do a program's work are built into it with the same compiler: zlib, libbz2, libevent. Hand-written assembly is
# switched off, so that all variants run the same algorithm and all accesses are seen.
set -eu
# shellcheck disable=SC2317 # functions are called by names that are put together
sources=$(cd "$1" && pwd)
mkdir -p "$2"
directory=$(cd "$2" && pwd)
CC=$3 CXX=$4 link=$5
export CC CXX
shift 5
here=$(cd "$(dirname "$0")/.." && pwd)
jobs=${JOBS:-$(nproc)}
flags="-O2"

# take PACKAGE: a copy of its sources to build in, and goes there
take() {
    mkdir -p "$directory/work"
    rm -rf "$directory/work/$1"
    cp -a "$sources/$1" "$directory/work/$1"
    cd "$directory/work/$1"
}

# need FILE FUNCTION: a library for the programs that follow
need() {
    [ -e "$directory/work/$1" ] || ("build_$2")
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
    CFLAGS="$flags" LDFLAGS="$link" ./configure --prefix="$directory/work/event" --disable-shared --disable-openssl --disable-samples \
        --disable-libevent-regress --disable-debug-mode --disable-dependency-tracking
    make -j"$jobs" install
}

build_pigz() {
    need zlib/libz.a zlib
    take pigz
    z=$directory/work/zlib
    # shellcheck disable=SC2046,SC2086 # words
    $CC $flags $link -Wno-error -I"$z" -o "$directory/pigz" pigz.c yarn.c try.c \
        $(ls zopfli/src/zopfli/*.c | grep -v -e _bin.c -e _lib.c -e gzip_container -e zlib_container) "$z/libz.a" -lpthread -lm
}

build_pbzip2() {
    need bzip2/libbz2.a bzip2
    take pbzip2
    # shellcheck disable=SC2086
    $CXX $flags $link -D_FILE_OFFSET_BITS=64 -D_LARGEFILE64_SOURCE -I"$directory/work/bzip2" -o "$directory/pbzip2" ./*.cpp \
        "$directory/work/bzip2/libbz2.a" -lpthread
}

build_zstd() {
    take zstd
    make -j"$jobs" -C programs zstd CC="$CC" CFLAGS="$flags -DZSTD_DISABLE_ASM=1" LDFLAGS="$link" ZSTD_NO_ASM=1 ZSTD_LEGACY_SUPPORT=0 HAVE_ZLIB=0 \
        HAVE_LZMA=0 HAVE_LZ4=0 BACKTRACE=0
    cp programs/zstd "$directory/zstd"
}

build_xz() {
    take xz-utils
    CFLAGS="$flags" LDFLAGS="$link" ./configure --disable-shared --disable-nls --disable-doc --disable-assembler --disable-scripts \
        --disable-dependency-tracking
    make -j"$jobs" -C src/liblzma && make -j"$jobs" -C src/xz
    cp src/xz/xz "$directory/xz"
}

build_x264() {
    take x264
    # configure takes the compiler for an unknown one if it is two words
    ./configure --disable-asm --disable-lavf --disable-swscale --disable-ffms --disable-gpac --disable-lsmash --disable-avs --disable-opencl \
        --bit-depth=8 --extra-cflags="$flags" --extra-ldflags="$link"
    make -j"$jobs" x264
    cp x264 "$directory/x264"
}

build_memcached() {
    need event/lib/libevent.a libevent
    take memcached
    CFLAGS="$flags -Wno-error" LDFLAGS="$link" ./configure --with-libevent="$directory/work/event" --disable-coverage --disable-docs \
        --disable-extstore --disable-dependency-tracking
    make -j"$jobs" memcached AUTOCONF=: AUTOHEADER=: AUTOMAKE=: ACLOCAL=: # what is packed is newer than it looks
    cp memcached "$directory/memcached"
}

build_redis() {
    take redis
    # Its build asks for -O3 -flto=auto only where it is not told otherwise.
    make -j"$jobs" -C src redis-server MALLOC=libc CC="$CC" OPTIMIZATION="$flags" CFLAGS="$flags" LDFLAGS="$link" REDIS_LDFLAGS="$link" BUILD_TLS=no \
        USE_SYSTEMD=no
    cp src/redis-server "$directory/redis"
}

kernel() {
    # shellcheck disable=SC2086
    $CC $flags $link -pthread -o "$directory/$1" "$here/kernels/${1#kernel-}.c" -lm
}

failed=
for program; do
    [ -x "$directory/$program" ] && continue
    echo "bench: building $(basename "$directory")/$program" >&2
    log=$directory/$program.log
    case $program in
    kernel-*) (kernel "$program") >"$log" 2>&1 || failed=1 ;;
    *) (set -e; "build_$program") >"$log" 2>&1 || failed=1 ;;
    esac
    if ! [ -x "$directory/$program" ]; then
        echo "bench: $program cannot be built with '$CC': $(grep -m1 -i error "$log" || tail -n 1 "$log") (all of it: $log)" >&2
    fi
done
exit 0
