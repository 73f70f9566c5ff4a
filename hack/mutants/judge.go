package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verdict is the result of a mutant.
type verdict string

const (
	caught   verdict = "caught"
	hangs    verdict = "hangs" // also caught: the specs do not end in time, but do without the mutant
	survived verdict = "SURVIVED"
	stale    verdict = "STALE" // the text is not in the file, or more than once
	broken   verdict = "BROKEN"
)

// judge tries mutants one after the other.
type judge struct {
	shop    *workshop
	timeout time.Duration
	out     io.Writer
	verbose bool
	// sound has, for each package that was tried, what is wrong with its specs without
	// a mutant.
	sound map[string]error
}

// try runs all mutants, prints the result of each, and returns how many are caught. It
// stops early with ctx.
func (j *judge) try(ctx context.Context, list []mutant) (int, error) {
	n := 0
	for _, m := range list {
		start := time.Now()
		v, why, err := j.one(ctx, m, list)
		if ctx.Err() != nil {
			return n, errors.New("interrupted")
		}
		if err != nil {
			return n, err
		}
		if v == caught || v == hangs {
			n++
		}
		_, _ = fmt.Fprintf(j.out, "%-8s %5.1fs  %-12s %s: %s\n", v, time.Since(start).Seconds(), m.id, m.file, m.breaks)
		if why != "" && (j.verbose || v == broken || v == stale) {
			_, _ = fmt.Fprintf(j.out, "%17s%s\n", "", strings.ReplaceAll(strings.TrimSpace(why), "\n", "\n"+strings.Repeat(" ", 17)))
		}
	}
	return n, nil
}

// one tries a mutant. all are the mutants of this run, whose specs are tried together
// without a mutant. The error is not about the mutant.
func (j *judge) one(ctx context.Context, m mutant, all []mutant) (v verdict, why string, err error) {
	if why := staleness(j.shop.dir, m); why != "" {
		return stale, why, nil
	}
	for _, s := range m.specs {
		if err := j.check(ctx, s.dir, all); err != nil {
			return broken, fmt.Sprintf("without the mutant, %s: %v", s.dir, err), nil
		}
	}
	undo, err := j.shop.change(m)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, undo()) }()
	for _, s := range m.specs {
		bin, err := j.shop.compile(ctx, s.dir)
		if err != nil {
			return broken, fmt.Sprintf("it does not compile: %v", err), nil
		}
		limit, cancel := context.WithTimeout(ctx, j.timeout)
		out, err := j.shop.test(limit, bin, s.dir, s.focus)
		late := limit.Err() != nil
		cancel()
		switch {
		case late:
			return hangs, fmt.Sprintf("%s did not end within %s", s.dir, j.timeout), nil
		case err != nil:
			return caught, failure(out), nil
		}
	}
	return survived, "", nil
}

// staleness says why a mutant cannot be applied anymore; empty if it can.
func staleness(root string, m mutant) string {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return err.Error()
	}
	switch n := strings.Count(string(text), m.old); n {
	case 1:
		return ""
	case 0:
		return "the text is no longer there: update the mutant, or delete it if the code is gone"
	default:
		return fmt.Sprintf("the text occurs %d times: add a line", n)
	}
}

// check reports what is wrong with the specs of a package that the mutants use: they
// must pass without a mutant, and fast enough to detect one that hangs.
func (j *judge) check(ctx context.Context, dir string, all []mutant) error {
	if err, ok := j.sound[dir]; ok {
		return err
	}
	var focuses []string
	for _, m := range all {
		for _, s := range m.specs {
			if s.dir == dir {
				focuses = append(focuses, s.focus)
			}
		}
	}
	if slices.Contains(focuses, "") {
		focuses = nil
	}
	err := j.pass(ctx, dir, focuses)
	j.sound[dir] = err
	return err
}

func (j *judge) pass(ctx context.Context, dir string, focuses []string) error {
	bin, err := j.shop.compile(ctx, dir)
	if err != nil {
		return fmt.Errorf("the specs do not compile: %w", err)
	}
	start := time.Now()
	limit, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	out, err := j.shop.test(limit, bin, dir, focuses...)
	took := time.Since(start)
	switch {
	case limit.Err() != nil || took > j.timeout/2:
		return fmt.Errorf("the specs take %s, more than half of %s: give a longer -timeout", took.Round(time.Second), j.timeout)
	case err != nil:
		return fmt.Errorf("the specs fail: %w\n%s", err, failure(out))
	}
	return nil
}

// failure returns the name of the spec that failed, or the end of the output.
func failure(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if strings.Contains(line, "[FAIL]") || strings.Contains(line, "[PANICKED]") || strings.Contains(line, "[TIMEDOUT]") {
			return strings.TrimSpace(line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
