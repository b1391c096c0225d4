// A Go library for programs in C: its runtime comes with the library, sets actions and alternate
// stacks by system calls of its own, and waits on futexes that nobody else sees.
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
