package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const usage = `usage: make mutants [ARGS="[flags] [word...]"]

Breaks the code in one place at a time, in a copy, and runs the specs that must
notice. A word chooses mutants: an id (plan-3), a table (plan), or a part of a
path with a slash (pkg/xds/plan). It fails when one survives or is stale.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run executes args in the module of the working directory.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		_, _ = fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	list := flags.Bool("list", false, "run nothing: list the mutants, and which are stale")
	verbose := flags.Bool("v", false, "say which spec caught each")
	sampled := flags.Int("sample", 0, "try only so many of them, at random; 0 means all")
	seed := flags.Uint64("seed", 1, "which of them -sample takes")
	timeout := flags.Duration("timeout", 5*time.Minute, "how long the specs of one mutant may take; one that makes them hang is caught")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := readTables(filepath.Join(root, "hack", "mutants"))
	if err != nil {
		return err
	}
	chosen, err := choose(all, flags.Args())
	if err != nil {
		return err
	}
	if *sampled > 0 {
		chosen = sample(chosen, *sampled, *seed)
	}
	if *list {
		return show(out, root, chosen)
	}
	shop, err := newWorkshop(ctx, root)
	if err != nil {
		return err
	}
	j := &judge{shop: shop, timeout: *timeout, out: out, verbose: *verbose, sound: map[string]error{}}
	n, err := j.try(ctx, chosen)
	if err := errors.Join(err, shop.close()); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d of %d mutants caught (%d%%)\n", n, len(chosen), 100*n/max(1, len(chosen)))
	if n < len(chosen) {
		return errors.New("a mutant that survives needs a spec, one that is stale a new text")
	}
	return nil
}

// show lists mutants without running them.
func show(out io.Writer, root string, list []mutant) error {
	bad := 0
	for _, m := range list {
		mark := ""
		if why := staleness(root, m); why != "" {
			bad++
			mark = " STALE: " + why
		}
		_, _ = fmt.Fprintf(out, "%-12s %s: %s%s\n", m.id, m.file, m.breaks, mark)
	}
	_, _ = fmt.Fprintf(out, "%d mutants\n", len(list))
	if bad > 0 {
		return fmt.Errorf("%d are stale", bad)
	}
	return nil
}
