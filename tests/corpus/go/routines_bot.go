// Searches with goroutines, and fills a table of 100 MB.
package main

import (
	"runtime"
	"sync"
)

func main() {
	table := make([]int64, 13_000_000)
	for i := range table {
		table[i] = 1
	}
	play(func(own, other []int) int {
		var group sync.WaitGroup
		sums := make([]int64, runtime.NumCPU())
		for worker := range sums {
			group.Add(1)
			go func(worker int) {
				defer group.Done()
				for i := worker; i < len(table); i += 1000 {
					sums[worker] += table[i]
				}
			}(worker)
		}
		group.Wait()
		return bestHole(own)
	})
}
