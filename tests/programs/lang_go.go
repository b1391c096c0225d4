// A Go program is static and issues futex calls directly: it must run natively, with the same
// result.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

func main() {
	runtime.GOMAXPROCS(8)
	var mu sync.Mutex
	var wg sync.WaitGroup
	n, ch := 0, make(chan int)
	for i := 0; i < 64; i++ {
		i := i // older compilers share it between iterations
		wg.Add(1)
		go func() {
			defer wg.Done()
			if i%8 == 0 {
				runtime.LockOSThread()
			}
			for k := 0; k < 200; k++ {
				mu.Lock()
				n++
				mu.Unlock()
				ch <- k
			}
		}()
	}
	go func() { wg.Wait(); close(ch) }()
	sum := 0
	for k := range ch {
		sum += k
	}
	if n != 64*200 || sum != 64*199*100 {
		fmt.Println("FAIL", n, sum)
		os.Exit(1)
	}
	fmt.Println("ok lang_go")
}
