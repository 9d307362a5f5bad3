// Prints the CPU seconds per call of an assignor of the Go driver, without JSON.
//
// The environment variables REQUEST and CALLS set the file of a request and the number of calls.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

func TestDirectCalls(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("REQUEST"))
	if err != nil {
		t.Fatal(err)
	}
	var each request
	if err := json.Unmarshal(text, &each); err != nil {
		t.Fatal(err)
	}
	calls, _ := strconv.Atoi(os.Getenv("CALLS"))
	start := 0.0
	for i := -calls; i < calls; i++ {
		if i == 0 {
			start = cpuSeconds()
		}
		if _, err := assign(each.Assignor, &each.Group); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println((cpuSeconds() - start) / float64(calls))
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	nanos := usage.Utime.Nano() + usage.Stime.Nano()
	return float64(nanos) / 1e9
}
