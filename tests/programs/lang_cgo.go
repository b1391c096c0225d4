// A Go program with C in it: it is linked dynamically and creates threads by pthread_create.
// Goroutines count in C under a pthread mutex, and wait for each other in Go.
package main

/*
#cgo LDFLAGS: -pthread
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counted;
static long count(long n) {
	for (long i = 0; i < n; i++) {
		pthread_mutex_lock(&mutex);
		counted++;
		pthread_mutex_unlock(&mutex);
	}
	return counted;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	const goroutines, rounds, each = 32, 100, 50
	done := make(chan int)
	for g := 0; g < goroutines; g++ {
		go func() {
			runtime.LockOSThread()
			for k := 0; k < rounds; k++ {
				C.count(each)
				runtime.Gosched()
			}
			done <- rounds * each
		}()
	}
	want := 0
	for g := 0; g < goroutines; g++ {
		want += <-done
	}
	if counted := int(C.count(0)); counted != want {
		fmt.Println("FAIL", counted, want)
		os.Exit(1)
	}
	fmt.Println("ok lang_cgo")
}
