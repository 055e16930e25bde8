// A small player of the Manchester protocol, which is compiled into each Go bot of the corpus.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const openingHole = 6

// bestHole returns a hole with an extra turn if there is one, else the fullest hole; own ends with our store.
func bestHole(own []int) int {
	pits, best := len(own)-1, -1
	for i := 0; i < pits; i++ {
		if own[i] > 0 && i+own[i] == pits {
			return i + 1
		}
		if own[i] > 0 && (best < 0 || own[i] > own[best]) {
			best = i
		}
	}
	return best + 1
}

func play(choose func(own, other []int) int) {
	seat, maySwap := "", false
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() && input.Text() != "END" {
		fields := strings.Split(input.Text(), ";")
		if fields[0] == "START" {
			seat = fields[1]
			maySwap = seat == "North"
			if !maySwap {
				fmt.Printf("MOVE;%d\n", openingHole)
			}
			continue
		}
		if fields[1] == "SWAP" {
			seat = "North"
		}
		if fields[3] != "YOU" {
			continue
		}
		var board []int
		for _, text := range strings.Split(fields[2], ",") {
			number, err := strconv.Atoi(text)
			if err != nil {
				panic(err)
			}
			board = append(board, number)
		}
		own, other := board[:len(board)/2], board[len(board)/2:]
		if seat == "South" {
			own, other = other, own
		}
		move, _ := strconv.Atoi(fields[1])
		if maySwap && move%2 == 0 {
			seat = "South"
			fmt.Println("SWAP")
		} else {
			fmt.Printf("MOVE;%d\n", choose(own, other))
		}
		maySwap = false
	}
}
