// Command hash prints the bcrypt hash of a password, which it reads from its standard
// input, as Dex's configuration needs it.
package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/crypto/bcrypt"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hash:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	password, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the password: %w", err)
	}
	hash, err := bcrypt.GenerateFromPassword(password, bcrypt.DefaultCost)
	if err != nil {
		return fmt.Errorf("hashing the password: %w", err)
	}
	_, err = fmt.Fprintln(out, string(hash))
	return err
}
