// A Go library for programs in C. It brings its runtime, which sets signal actions and alternate
// stacks by its own system calls, and waits on futexes that no other code sees.
package main

import "C"

//export Sum
func Sum(n C.long) C.long {
	done := make(chan int)
	for g := 0; g < 16; g++ {
		go func() {
			x := 0
			for k := 0; k < int(n); k++ {
				x += k % 3
			}
			done <- x
		}()
	}
	s := 0
	for g := 0; g < 16; g++ {
		s += <-done
	}
	return C.long(s)
}

func main() {}
