#!/bin/sh
# redflag go: Go programs on our detector. What is built here needs little of Go's library, as all of it is compiled with -race first.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
GOCACHE=$(cd "$(dirname "$REDFLAG")" && pwd)/go-cache
export GOCACHE GOFLAGS='' GO111MODULE=off HOME="$scratch"
cd "$scratch"
unset REDFLAG_OPTIONS GORACE REDFLAG_GO CC

fail() {
    echo "go: $1" >&2
    exit 1
}

# status EXPECTED COMMAND...
status() {
    expected=$1 got=0
    shift
    timeout 800 "$@" >out 2>&1 || got=$?
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

silent() {
    [ ! -s out ] || {
        cat out >&2
        fail "something was said"
    }
}

command -v go >/dev/null || fail "go is not installed"

cat >race.go <<'GO'
package main

var x int

func store(v int) { x = v }

func racer(done chan bool) {
	store(1)
	done <- true
}

func start(done chan bool) { go racer(done) }

func main() {
	done := make(chan bool)
	start(done)
	store(2)
	<-done
}
GO

# The program has the detector inside: nothing of ours is needed when it runs, wherever it is.
status 0 "$REDFLAG" go build -o race race.go
silent
mkdir away
mv race away/race
status 66 env -i GORACE=atexit_sleep_ms=0 away/race
said '^WARNING: DATA RACE$'
said '^Found 1 data race(s)$'
# Both stacks, innermost function first, whether inlined or not, and where the goroutine was started.
tr '\n' ' ' <out | sed 's/0x[0-9a-f]*/X/g; s/  */ /g' >flat
grep -q 'Write at X by [^:]*: main.store() [^ ]*/race.go:5 +X main' flat || fail "the first stack"
grep -q 'Previous write at X by [^:]*: main.store() [^ ]*/race.go:5 +X main' flat || fail "the second stack"
grep -q 'main.racer() [^ ]*/race.go:8 +X ' flat || fail "the goroutine's stack"
grep -q 'Goroutine [0-9]* (running) created at: main.start() [^ ]*/race.go:12 +X main.main() [^ ]*/race.go:16 +X =====' flat ||
    fail "where the goroutine was started"
! grep -q 'runtime' out || fail "frames of the runtime are shown"

# GORACE
status 13 env GORACE='exitcode=13 atexit_sleep_ms=0' away/race
status 66 env GORACE='atexit_sleep_ms=0 halt_on_error=1' away/race
! grep -q '^Found' out || fail "halt_on_error does not halt"
status 66 env GORACE="atexit_sleep_ms=0 strip_path_prefix=$scratch/ra" away/race
said '^      ce.go:5 '
status 66 env GORACE="atexit_sleep_ms=0 log_path=$scratch/log" away/race
silent
grep -q '^Found 1' "$scratch"/log.* || fail "log_path has no report"
status 66 env GORACE='atexit_sleep_ms=0 history_size=7' away/race
status 66 env GORACE='atexit_sleep_ms=0 colour=red' away/race
said "GORACE: 'colour=red' is not known"

# The bundled detector is out. That is not to be taken for granted: an overlay that replaces its object is ignored without a word.
# The linker's symbols tell whose detector is inside.
go tool nm away/race >names
! grep -qi 'sanitizer' names || fail "the bundled detector is inside"
grep -q ' access_slowly$' names || fail "our detector is not inside"
goroot=$(go env GOROOT)
echo 'no object at all' >fake.syso
printf '{"Replace":{"%s/src/runtime/race/race_linux_amd64.syso":"%s/fake.syso"}}' "$goroot" "$scratch" >fake.json
status 0 go list -race -overlay=fake.json -f '{{.SysoFiles}}' runtime/race
said race_linux_amd64.syso
# So a go that does not follow the overlay is found out before anything is built.
cat >deaf <<'SH'
#!/bin/sh
for word; do
    shift
    case $word in -overlay*) ;; *) set -- "$@" "$word" ;; esac
done
exec go "$@"
SH
chmod +x deaf
status 2 env REDFLAG_GO="$scratch/deaf" "$REDFLAG" go build -o deaf-race race.go
said 'does not build runtime/race from our files'
[ ! -e deaf-race ] || fail "it was built with the bundled detector"

# What is ordered is not reported; a hundred thousand goroutines one after the other, twelve thousand at once (the bundled detector
# ends at 8128), with identities used again.
cat >many.go <<'GO'
package main

import (
	"sync"
	"sync/atomic"
)

type pair struct{ a, b int }

var (
	mutex  sync.Mutex
	total  int
	flags  [64]byte
	halves [32]int32
	pairs  [16]pair
	sum    int64
)

func work(i int, wait *sync.WaitGroup) {
	flags[i%64]++
	halves[i%32]++
	pairs[i%16] = pair{i, i}
	pairs[i%16].b++
	mutex.Lock()
	total++
	mutex.Unlock()
	atomic.AddInt64(&sum, 1)
	wait.Done()
}

func main() {
	for i := 0; i < 100000; i++ {
		var wait sync.WaitGroup
		wait.Add(1)
		go work(i, &wait)
		wait.Wait()
	}
	for i := 0; i < 64; i += 16 {
		var wait sync.WaitGroup
		wait.Add(16)
		for j := 0; j < 16; j++ {
			go work(i+j, &wait)
		}
		wait.Wait()
	}
	gate, wait := make(chan bool), sync.WaitGroup{}
	wait.Add(12000)
	for i := 0; i < 12000; i++ {
		go func() {
			<-gate
			mutex.Lock()
			total++
			mutex.Unlock()
			wait.Done()
		}()
	}
	close(gate)
	wait.Wait()
	if total != 112064 || sum != 100064 {
		panic("wrong")
	}
}
GO
status 0 "$REDFLAG" go build -o many many.go
status 0 env GORACE=atexit_sleep_ms=0 ./many
silent

# go's own arguments, the user's own overlay, tests.
sed 's/store(2)/_ = 2/; s/ store(1)/ _ = 1/' race.go >clean.go
printf '{"Replace":{"%s/race.go":"%s/clean.go"}}' "$scratch" "$scratch" >own.json
status 0 "$REDFLAG" go run -overlay own.json race.go
silent
GOFLAGS=-overlay=own.json status 0 "$REDFLAG" go run race.go
silent
GORACE=atexit_sleep_ms=0 status 1 "$REDFLAG" go run race.go
said '^exit status 66$'
# The same for tools that call go themselves.
status 0 "$REDFLAG" go overlay .
said "^$scratch/overlay.json$"
grep -q rf_slow race_amd64.s || fail "the quick hooks are not in Go's file"
status 0 go build -race -overlay=overlay.json -o by-go race.go
cmp by-go away/race || fail "go with the overlay builds another program"
# A mutex tells FastTrack once what it orders. Its lines keep their numbers; to other detectors it tells all.
own=$(go env GOROOT)/src/sync/mutex.go
[ "$(grep -n '^func' mutex.go)" = "$(grep -n '^func' "$own")" ] || fail "lines of sync/mutex.go have other numbers"
[ "$(grep -c 'race.Release' mutex.go)" -lt "$(grep -c 'race.Release' "$own")" ] || fail "a mutex tells everything twice"
# As soon as a bucket of a map is known the histories of its elements are asked for.
for file in map map_fast32 map_fast64 map_faststr; do
    own=$(go env GOROOT)/src/runtime/$file.go
    grep -q '; racebucket' $file.go || fail "the histories of a map's elements are not asked for: $file.go"
    [ "$(grep -n '^func' $file.go | grep -v racebucket)" = "$(grep -n '^func' "$own")" ] || fail "lines of $file.go have other numbers"
done
mkdir others
status 0 "$REDFLAG" go -d acculock overlay others
[ ! -e others/mutex.go ] || fail "other detectors do not see locks"
status 2 "$REDFLAG" go overlay
said 'one directory'
status 2 "$REDFLAG" go overlay no/such
said 'no/such'

# An atomic operation and a plain access race; whose operation it is is shown, though a wrapper of Go's stands between.
cat >atomic.go <<'GO'
package main

import "sync/atomic"

var x int64

func add() { atomic.AddInt64(&x, 1) }

func main() {
	done := make(chan bool)
	go func() {
		add()
		done <- true
	}()
	x = 3
	<-done
}
GO
status 0 "$REDFLAG" go build -o atomic atomic.go
status 66 env GORACE=atexit_sleep_ms=0 ./atomic
said '^  sync/atomic.AddInt64()$'
said '/atomic.go:7 '
said '/atomic.go:15 '

# Of several accesses the last is told, and where that was, though only the first of each variable and stack is a call into C.
cat >later.go <<'GO'
package main

import (
	"runtime"
	"sync"
)

var (
	x, y, seen int
	finished   bool
	mutex      sync.Mutex
)

func later() {
	mutex.Lock()
	mutex.Unlock()
}

func first() {
	for i := 0; i < 3; i++ {
		x = 1
		seen += y
		later()
	}
	x = 2
	if y != 0 {
		x = 3
	}
	finish()
}

//go:norace
func finish() { finished = true }

//go:norace
func wait() {
	for !finished {
		runtime.Gosched()
	}
}

func main() {
	go first()
	wait()
	x = 4
	y = 5
}
GO
status 0 "$REDFLAG" go build -o later later.go
status 66 env GORACE=atexit_sleep_ms=0 ./later
said '^Found 2 data race(s)$'
said '/later.go:25 '
said '/later.go:26 '
said '/later.go:45 '
said '/later.go:46 '
! grep -q '/later.go:2[12] ' out || fail "an access that is not the last was told"

# Other detectors. AccuLock sees what only the order of two locks hides, and what locks protect it does not report.
cat >hidden.go <<'GO'
package main

import (
	"runtime"
	"sync"
)

var (
	mutex         sync.Mutex
	rw            sync.RWMutex
	hidden, a, b  int
	first, second = make(chan bool), make(chan bool)
)

func one() {
	hidden = 1
	mutex.Lock()
	a++
	mutex.Unlock()
	rw.RLock()
	_ = b
	rw.RUnlock()
	first <- true
}

func two() {
	mutex.Lock()
	a++
	mutex.Unlock()
	hidden = 2
	rw.Lock()
	b++
	rw.Unlock()
	second <- true
}

//go:norace
func late(go1 *bool) {
	for !*go1 {
		runtime.Gosched()
	}
	two()
}

func main() {
	start := false
	go late(&start)
	go one()
	<-first
	open(&start)
	<-second
}

//go:norace
func open(start *bool) { *start = true }
GO
status 0 "$REDFLAG" go run hidden.go
silent
status 0 "$REDFLAG" go -d acculock build -o hidden hidden.go
status 66 env GORACE=atexit_sleep_ms=0 ./hidden
said '^Found 1 data race(s)$'
said '/hidden.go:16 '
said '/hidden.go:30 '
status 0 env GORACE=atexit_sleep_ms=0 REDFLAG_OPTIONS=detector=fasttrack ./hidden
silent
status 67 env REDFLAG_OPTIONS=detector=djit ./hidden
said 'not inside the program'
# PACER: all of the run is sampled, or nothing, or little of it.
status 0 "$REDFLAG" go -d pacer build -o sampled race.go
status 66 env GORACE=atexit_sleep_ms=0 REDFLAG_OPTIONS=rate=1 ./sampled
said '^Found 1 data race(s)$'
status 0 env GORACE=atexit_sleep_ms=0 REDFLAG_OPTIONS=rate=0 ./sampled
silent
status 0 "$REDFLAG" go -d pacer --rate 0.01 run hidden.go
silent
status 0 "$REDFLAG" go -d list
said '^acculock$'

status 2 "$REDFLAG" go
said 'no verb'
status 2 "$REDFLAG" go fmt
said "'fmt'; build"
status 2 "$REDFLAG" go -d nonsense run race.go
said 'no detector'
status 2 "$REDFLAG" go --rate 0.5 build race.go
said REDFLAG_OPTIONS
status 2 "$REDFLAG" go --rate much run race.go
said "'much' is not a number"
status 2 env REDFLAG_GO=no-such-go "$REDFLAG" go run race.go
said 'REDFLAG_GO names'
printf '#!/bin/sh\n[ "$*" = "env GOVERSION" ] && exec echo go1.190.2\nexec go "$@"\n' >newer
chmod +x newer
status 2 env REDFLAG_GO="$scratch/newer" "$REDFLAG" go run race.go
said 'is go1.190.2, and this detector is made for go1.19;'
status 0 "$REDFLAG" go --help
said 'usage: redflag go'
