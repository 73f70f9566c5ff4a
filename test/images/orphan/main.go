// Command orphan leaves an orphan: it starts a child, prints its process ID and ends. The
// child ends as soon as it is one.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) > 1 {
		// The parent holds the other end of the pipe, until it has ended.
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	child := exec.Command(os.Args[0], "child") //nolint:gosec // itself
	if _, err := child.StdinPipe(); err != nil {
		panic(err)
	}
	if err := child.Start(); err != nil {
		panic(err)
	}
	fmt.Println(child.Process.Pid)
}
