#!/bin/sh
# redflag cc and c++: drop-in compilers, over gcc and clang. Every program here has a race, or none, and must say so when it runs.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH

fail() {
    echo "cc: $1" >&2
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
void touch(void);
static void *work(void *unused)
{
    touch();
    return unused;
}
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, work, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
C
cat >touch.c <<'C'
int shared;
void touch(void);
void touch(void)
{
    shared++;
}
C
cat >race.cc <<'C'
#include <thread>
int shared;
int main()
{
    std::thread a([] { shared++; }), b([] { shared++; });
    a.join();
    b.join();
}
C

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    case $compiler in gcc) cxx=g++ ;; *) cxx=clang++ ;; esac
    export REDFLAG_CC="$compiler" REDFLAG_CXX="$cxx"

    # At once, and step by step.
    status 0 "$REDFLAG" cc -Werror -g -pthread main.c touch.c -o whole
    status 66 ./whole
    said 'data race'
    said touch
    status 0 "$REDFLAG" cc -Werror -O2 -c main.c
    status 0 "$REDFLAG" cc -Werror -O2 -c touch.c -fPIC
    status 0 "$REDFLAG" cc -Werror main.o touch.o -o parts -pthread
    status 66 ./parts
    # Libraries, static and shared; the latter also with all symbols asked for.
    ar rcs libtouch.a touch.o
    status 0 "$REDFLAG" cc main.o -L. -Wl,-Bstatic -ltouch -Wl,-Bdynamic -pthread -o with_archive
    status 66 ./with_archive
    rm libtouch.a
    status 0 "$REDFLAG" cc -shared touch.o -Wl,-z,defs -o libtouch.so
    status 0 "$REDFLAG" cc main.o -L. -ltouch "-Wl,-rpath,$scratch" -pthread -o with_library
    status 66 ./with_library
    rm libtouch.so
    # C++, link-time optimisation, both kinds of executables, response files, the standard input.
    status 0 "$REDFLAG" c++ -pthread race.cc -o cxx
    status 66 ./cxx
    status 0 "$REDFLAG" cc -O2 -flto -pthread main.c touch.c -o lto
    status 66 ./lto
    for kind in -no-pie -pie; do
        status 0 "$REDFLAG" cc "$kind" -fPIE -pthread main.c touch.c -o kind
        status 66 ./kind
    done
    echo '-pthread main.c touch.c -o "by file"' >words
    status 0 "$REDFLAG" cc @words
    status 66 './by file'
    echo '-c touch.c -o file.o' >words
    status 0 "$REDFLAG" cc -Werror @words
    "$REDFLAG" cc -Werror -x c - -c -o stdin.o <touch.c || fail "the standard input is not compiled"
    # What is not compiled is not instrumented; what need not be is not.
    status 0 "$REDFLAG" cc -Werror -S touch.c
    status 0 "$REDFLAG" cc -Werror -c touch.s -o assembled.o
    status 0 "$REDFLAG" cc -Werror -r assembled.o -o relocatable.o
    status 0 "$REDFLAG" cc -Werror -c main.c touch.c
    status 0 "$REDFLAG" cc -Werror -r main.o touch.o -o relocatable.o
    status 0 "$REDFLAG" cc -Werror relocatable.o -pthread -o from_one
    status 66 ./from_one
    status 0 "$REDFLAG" cc -Werror -E -dM main.c
    status 0 "$REDFLAG" cc -fno-sanitize=thread -pthread main.c touch.c -o plain
    status 0 ./plain
    if readelf -d plain | grep -q "NEEDED.*redflag"; then fail "-fno-sanitize=thread still brings the runtime"; fi
    status 1 "$REDFLAG" cc -pthread -fno-sanitize=thread main.o touch.o -o mixed
    said __tsan_
    echo 'extern int shared;' >some.h
    status 0 "$REDFLAG" cc -Werror some.h -o some.h.gch
    # The undefined-behaviour sanitizer may come along; the address sanitizer may not, as the compiler says.
    status 0 "$REDFLAG" cc -fsanitize=undefined -pthread main.c touch.c -o both
    status 66 ./both
    status 1 "$REDFLAG" cc -fsanitize=address main.c touch.c -o never
    # ... unless it comes instead of ours: then its runtime comes with it.
    status 0 "$REDFLAG" cc -pthread main.c touch.c -fno-sanitize=thread -fsanitize=address -o other
    status 0 env ASAN_OPTIONS=detect_leaks=0 ./other
    # Questions.
    status 0 "$REDFLAG" cc --version
    said "$compiler"
    status 0 "$REDFLAG" cc -print-file-name=libc.so
    status 0 "$REDFLAG" cc -dumpmachine
    said x86_64
    status 0 "$REDFLAG" cc -v
    # What cannot be.
    status 2 "$REDFLAG" cc -static main.c touch.c -o never
    said 'without -static'
    status 0 "$REDFLAG" cc -static -c touch.c
    # The compiler's own failures stay its own.
    status 1 "$REDFLAG" cc -c missing.c
done

unset REDFLAG_CXX
export REDFLAG_CC="gcc -DVALUE='\"a b\"'"
echo 'const char *value = VALUE;' >value.c
status 0 "$REDFLAG" cc -c value.c
REDFLAG_CC=no-such-compiler
status 2 "$REDFLAG" cc -c value.c
said 'no-such-compiler'
REDFLAG_CC="$REDFLAG cc"
status 2 "$REDFLAG" cc -c value.c
said 'redflag itself'
# A compiler by another name is asked.
printf '#!/bin/sh\nexec clang "$@"\n' >mycc
chmod +x mycc
REDFLAG_CC=./mycc
if command -v clang >/dev/null; then
    status 0 "$REDFLAG" cc -pthread main.c touch.c -o asked
    status 66 ./asked
fi
unset REDFLAG_CC

# Build systems, with nothing but the name of the compiler.
mkdir made cmake
cp main.c touch.c made
# The dollars are make's.
# shellcheck disable=SC2016
printf 'app: main.o touch.o\n\t$(CC) $(LDFLAGS) -pthread -o $@ $^\n' >made/Makefile
status 0 make -C made CC="$REDFLAG cc"
status 66 made/app
if command -v cmake >/dev/null; then
    cp main.c touch.c race.cc cmake
    cat >cmake/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(race C CXX)
find_package(Threads REQUIRED)
add_library(touch SHARED touch.c)
add_executable(app main.c)
target_link_libraries(app touch Threads::Threads)
add_executable(cxx race.cc)
target_link_libraries(cxx Threads::Threads)
CMAKE
    CC="$REDFLAG cc" CXX="$REDFLAG c++" cmake -S cmake -B cmake/build >out 2>&1 || fail "cmake: $(cat out)"
    status 0 make -C cmake/build
    status 66 cmake/build/app
    status 66 cmake/build/cxx
fi
if command -v meson >/dev/null && command -v ninja >/dev/null; then
    mkdir meson
    cp main.c touch.c meson
    cat >meson/meson.build <<'MESON'
project('race', 'c')
threads = dependency('threads')
library = shared_library('touch', 'touch.c')
executable('app', 'main.c', link_with: library, dependencies: threads)
MESON
    CC="$REDFLAG cc" meson setup meson/build meson >out 2>&1 || fail "meson: $(cat out)"
    status 0 ninja -C meson/build
    status 66 meson/build/app
fi
if command -v autoconf >/dev/null && command -v automake >/dev/null; then
    mkdir auto
    cp main.c touch.c auto
    cat >auto/configure.ac <<'AC'
AC_INIT([race], [1])
AM_INIT_AUTOMAKE([foreign])
AC_PROG_CC
AC_SEARCH_LIBS([pthread_create], [pthread])
AC_CHECK_FUNCS([strdup no_such_function])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
AC
    printf 'bin_PROGRAMS = app\napp_SOURCES = main.c touch.c\n' >auto/Makefile.am
    (cd auto && autoreconf -i && ./configure CC="$REDFLAG cc" && make) >out 2>&1 || fail "autotools: $(cat out)"
    status 66 auto/app
fi
