package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kong"
)

func newImportKong() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kong FILE|-",
		Short: "Write a declarative file of Kong as a configuration document",
		Long: `Reads a declarative file of Kong Gateway, as "deck gateway dump" writes it, and
writes the configuration document that "gatehouse apply" reads. It calls no server.

What the document does not say as the file did is named with its line, and the exit
code is 1. Where that decides who may send requests, the routes are closed (503) until
they are mended by hand. The document has the passwords and shared keys that the file has.`,
		Example: `  gatehouse import kong kong.yaml --proxy gw > gateway.yaml
  gatehouse validate -f gateway.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return importKong(cmd, args[0]) },
	}
	cmd.Flags().String("proxy", "", "name of the proxy to attach the services to (default: none)")
	return cmd
}

func importKong(cmd *cobra.Command, file string) error {
	in, err := openInput(cmd, file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	r, err := kong.Import(in, kong.Options{Proxy: text(cmd, "proxy")})
	if err != nil {
		return &runError{fmt.Errorf("reading %s: %w", file, err)}
	}
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, n.String())
	}
	return writeImported(cmd, notes, len(notes) > 0, func(w io.Writer) error {
		_, err := w.Write(r.Document)
		return err
	})
}

// openInput opens a file, or the standard input for "-".
func openInput(cmd *cobra.Command, file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(cmd.InOrStdin()), nil
	}
	return os.Open(file)
}

// writeImported writes what became of a file of another gateway. It fails if that differs from the file.
func writeImported(cmd *cobra.Command, notes []string, differs bool, write func(io.Writer) error) error {
	if err := printEach(cmd.ErrOrStderr(), "warning: ", notes); err != nil {
		return err
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if differs {
		return &runError{errors.New("the result is written, but differs from the file as the warnings above say")}
	}
	return nil
}
