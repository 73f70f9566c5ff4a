// Command orphan leaves an orphan: it starts a child, prints its process ID and exits.
// The child exits as soon as it is an orphan.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) > 1 {
		// The parent keeps the other end of the pipe open until it has exited.
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
