// A Kalah bot to start from.  Make choosePit and wantsToSwap cleverer; the rest can stay as it is.
//
// Both get the two halves of the board: own and other hold the seeds in the pits and, as the last number, in the
// store.  own[0] is our pit 1, the furthest from our store; opposite of own[i] lies other[pits-1-i].
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// The pit to empty; pit 1 is own[0].  This is the place for your ideas.
func choosePit(own, other []int) int {
	pits := len(own) - 1
	// 1. A last seed in our store gives another turn: take one, the pit nearest to the store first.
	for i := pits - 1; i >= 0; i-- {
		if own[i] > 0 && lastSeed(own, i) == pits {
			return i + 1
		}
	}
	// 2. Else capture as many seeds as we can; 3. else empty the fullest pit, the nearest of equal ones.
	best := -1
	for i := 0; i < pits; i++ {
		if own[i] > 0 && (best < 0 || worth(own, other, i) >= worth(own, other, best)) {
			best = i
		}
	}
	return best + 1
}

// Whether to take the opponent's side, as our answer to its first move (the pie rule).  The opponent would move
// next, from our side.  So we swap if it is ahead and our side has no extra turn.
func wantsToSwap(own, other []int) bool {
	pits := len(own) - 1
	for i := 0; i < pits; i++ {
		if own[i] > 0 && lastSeed(own, i) == pits {
			return false
		}
	}
	return other[pits] > own[pits]
}

// The value of emptying own[i]: a capture counts far more than the seeds of a full pit.
func worth(own, other []int, i int) int {
	return 1000*captured(own, other, i) + own[i]
}

// The index of the last seed of own[i]: from 0 our pits, then our store, then the other's pits.
func lastSeed(own []int, i int) int {
	return (i + own[i]) % (2*len(own) - 1) // the other's store is left out
}

// The seeds that own[i] captures: our last one and all opposite, if it falls in an empty pit.
func captured(own, other []int, i int) int {
	pits := len(own) - 1
	last := lastSeed(own, i)
	if last >= pits || own[i] > 2*pits+1 || (own[last] > 0 && last != i) {
		return 0
	}
	opposite := other[pits-1-last]
	if i+own[i] > 2*pits { // once around: every pit of the other got a seed on the way
		opposite++
	}
	if opposite == 0 {
		return 0
	}
	return opposite + 1
}

func numbers(text string) []int {
	var found []int
	for _, word := range strings.Split(text, ",") {
		number, err := strconv.Atoi(word)
		if err != nil {
			panic(err)
		}
		found = append(found, number)
	}
	return found
}

// The board of the start, all pits full, from a game's name such as "manchester" or "kalah(6,4)".
func startBoard(game string) []int {
	size := []int{7, 7}
	if strings.HasPrefix(game, "bga") {
		size = []int{6, 4}
	}
	if open := strings.Index(game, "("); open >= 0 {
		size = numbers(game[open+1 : strings.Index(game, ")")])
	}
	board := make([]int, 2*(size[0]+1))
	for i := 0; i < size[0]; i++ {
		board[i], board[size[0]+1+i] = size[1], size[1]
	}
	return board
}

// The conversation with the referee: read a line, and answer when it is our turn.
func main() {
	game := os.Getenv("KALARENA_GAME")
	if game == "" {
		game = "manchester"
	}
	pieRule := (strings.Contains(game, "+pie") || strings.HasPrefix(game, "manchester")) &&
		!strings.Contains(game, "+pie=no")
	_, opening := os.LookupEnv("KALARENA_OPENING") // some moves are made before the first turn
	seat, board, myTurn, maySwap := "", startBoard(game), false, false
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		fields := strings.Split(input.Text(), ";")
		switch fields[0] {
		case "START": // START;South moves first, START;North second
			seat = fields[1]
			myTurn = seat == "South" && !opening
			maySwap = seat == "North" && !opening && pieRule
		case "CHANGE": // CHANGE;<move>;<board>;<YOU, OPP or END>
			if fields[1] == "SWAP" { // the opponent took our seat, so we have the other one
				seat = map[string]string{"South": "North", "North": "South"}[seat]
			}
			board = numbers(fields[2])
			myTurn = fields[3] == "YOU"
		case "END":
			return
		default: // TIME, which only bots that ask for it in bot.toml are told
			continue
		}
		if !myTurn {
			continue
		}
		own, other := board[:len(board)/2], board[len(board)/2:] // North's half is the first
		if seat == "South" {
			own, other = other, own
		}
		reply := ""
		if maySwap && wantsToSwap(own, other) {
			seat, reply = "South", "SWAP"
		} else {
			reply = fmt.Sprintf("MOVE;%d", choosePit(own, other))
		}
		maySwap = false // only our very first answer may be SWAP
		// What goes to standard error is only seen by you.
		fmt.Fprintf(os.Stderr, "%s: own %v, other %v: %s\n", seat, own, other, reply)
		fmt.Println(reply)
	}
}
