// Logs beside its own program, and reads its settings from there.
package main

import (
	"log"
	"os"
	"path/filepath"
	"time"
)

func main() {
	program, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	folder := filepath.Dir(program)
	if _, err := os.ReadFile(filepath.Join(folder, "settings.txt")); err != nil {
		log.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(folder, "debug.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	logger := log.New(file, "", log.LstdFlags)
	play(func(own, other []int) int {
		logger.Println(time.Now().Local(), own, other, bestHole(own))
		return bestHole(own)
	})
}
