// The kernels of bench/go.sh: each runs one of them and prints how many milliseconds it took, of processor time and by the clock.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const workers = 4

func parallel(f func(worker int)) {
	var wait sync.WaitGroup
	for i := 0; i < workers; i++ {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			f(i)
		}(i)
	}
	wait.Wait()
}

func matmul(scale int) {
	const n = 160
	for ; scale > 0; scale-- {
		a, b, c := make([][]float64, n), make([][]float64, n), make([][]float64, n)
		for i := range a {
			a[i], b[i], c[i] = make([]float64, n), make([]float64, n), make([]float64, n)
			for j := range a[i] {
				a[i][j], b[i][j] = float64(i+j), float64(i-j)
			}
		}
		parallel(func(worker int) {
			for i := worker; i < n; i += workers {
				for j := 0; j < n; j++ {
					s := 0.0
					for k := 0; k < n; k++ {
						s += a[i][k] * b[k][j]
					}
					c[i][j] = s
				}
			}
		})
	}
}

type item struct {
	key  int
	name string
}

func sorting(scale int) {
	for ; scale > 0; scale-- {
		parallel(func(worker int) {
			items := make([]item, 20000)
			x := uint32(worker + 1)
			for i := range items {
				x = x*1664525 + 1013904223
				items[i] = item{int(x >> 8), "x"}
			}
			sort.Slice(items, func(i, j int) bool { return items[i].key < items[j].key })
		})
	}
}

// A map behind locks, as servers have them: 32 parts, each with a lock of its own, and keys in no order.
func mutex(scale int) {
	var parts [32]struct {
		lock  sync.Mutex
		table map[int]int
	}
	for i := range parts {
		parts[i].table = map[int]int{}
	}
	for ; scale > 0; scale-- {
		parallel(func(worker int) {
			x := uint32(worker + 1)
			for i := 0; i < 20000; i++ {
				x = x*1664525 + 1013904223
				part := &parts[x>>27]
				part.lock.Lock()
				part.table[int(x>>8)%1000]++
				part.lock.Unlock()
			}
		})
	}
}

// Hardly anything but locking: as many locks, each with a counter.
func locks(scale int) {
	var parts [32]struct {
		lock  sync.Mutex
		count int
	}
	for ; scale > 0; scale-- {
		parallel(func(worker int) {
			x := uint32(worker + 1)
			for i := 0; i < 20000; i++ {
				x = x*1664525 + 1013904223
				part := &parts[x>>27]
				part.lock.Lock()
				part.count++
				part.lock.Unlock()
			}
		})
	}
}

// One lock that all want at once: most of it is the kernel putting threads to sleep.
func contended(scale int) {
	var lock sync.Mutex
	table := map[int]int{}
	for ; scale > 0; scale-- {
		parallel(func(worker int) {
			for i := 0; i < 20000; i++ {
				lock.Lock()
				table[i%1000]++
				lock.Unlock()
			}
		})
	}
}

func atomics(scale int) {
	var sum, flag int64
	for ; scale > 0; scale-- {
		parallel(func(worker int) {
			for i := 0; i < 50000; i++ {
				atomic.AddInt64(&sum, 1)
				if atomic.LoadInt64(&flag) != 0 {
					atomic.StoreInt64(&flag, 0)
				}
				atomic.CompareAndSwapInt64(&flag, 0, int64(i&1))
			}
		})
	}
}

func spawn(scale int) {
	results := make([]int, 100)
	for ; scale > 0; scale-- {
		for i := 0; i < 200; i++ {
			var wait sync.WaitGroup
			for j := range results {
				wait.Add(1)
				go func(j int) {
					results[j] += j
					wait.Done()
				}(j)
			}
			wait.Wait()
		}
	}
}

func serve(scale int) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var hits int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := atomic.AddInt64(&hits, 1)
		io.WriteString(w, "hello "+strconv.FormatInt(n, 10)+" "+r.URL.Query().Get("q"))
	})}
	go server.Serve(listener)
	url := "http://" + listener.Addr().String() + "/?q="
	for ; scale > 0; scale-- {
		parallel(func(worker int) {
			client := &http.Client{Transport: &http.Transport{}}
			for i := 0; i < 200; i++ {
				response, err := client.Get(url + strconv.Itoa(i))
				if err != nil {
					panic(err)
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			client.CloseIdleConnections()
		})
	}
	server.Close()
}

var kernels = map[string]func(int){
	"matmul": matmul, "sort": sorting, "mutex": mutex, "atomics": atomics, "spawn": spawn, "http": serve,
	"locks": locks, "contended": contended,
}

func processor() int64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func main() {
	if len(os.Args) != 3 || kernels[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: main matmul|sort|mutex|atomics|spawn|http|locks|contended SCALE")
		os.Exit(2)
	}
	scale, _ := strconv.Atoi(os.Args[2])
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2)
	}
	before, start := processor(), time.Now()
	kernels[os.Args[1]](scale)
	fmt.Printf("%.1f %.1f\n", float64(processor()-before)/1e6, float64(time.Since(start))/1e6)
}
