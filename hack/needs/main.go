// Command needs prints the loader of a program and the libraries that it needs, each on a line of its own. Unlike ldd it
// does not run the program, so that may be for another machine.
//
// usage: go run ./hack/needs PROGRAM
package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "needs: "+err.Error())
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: go run ./hack/needs PROGRAM")
	}
	file, err := elf.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	needs, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(p.Open())
			if err != nil {
				return err
			}
			path := string(bytes.TrimRight(loader, "\x00"))
			// A library of C may name the loader, too.
			needs = append(slices.DeleteFunc(needs, func(name string) bool { return name == filepath.Base(path) }), path)
		}
	}
	_, err = fmt.Println(strings.Join(needs, "\n"))
	return err
}
