// Command docs builds the site of the documentation from docs/*.md: it prepares the pages, runs bin/mkdocs, checks
// the result and packs it. The same pages give the same bytes (ADR 0119).
//
// usage: docs [ROOT]
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/hack/pack"
)

// packed is where the program embeds the site from.
const packed = "pkg/input/rest/docs/site.zip"

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// run builds the site of a checkout in its bin/docs/site, and packs it.
func run(root string) error {
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o750); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Join(root, "bin"), "docs-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	files, err := build(root, work)
	if err != nil {
		return err
	}
	site := filepath.Join(root, "bin/docs/site")
	if err := os.RemoveAll(site); err != nil {
		return err
	}
	for name, content := range files {
		if err := write(filepath.Join(site, name), content); err != nil {
			return err
		}
	}
	zip, err := pack.Zip(files)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bin/docs/site has %d files, and %s %d kB\n", len(files), packed, len(zip)/1000)
	// In one step: a compiler may be reading it.
	whole := filepath.Join(work, "site.zip")
	if err := write(whole, zip); err != nil {
		return err
	}
	return os.Rename(whole, filepath.Join(root, packed))
}

// build returns the files of the site of a checkout. MkDocs works in the empty folder work.
func build(root, work string) (map[string][]byte, error) {
	prepared, err := prepare(root)
	if err != nil {
		return nil, err
	}
	for name, content := range prepared {
		if err := write(filepath.Join(work, name), content); err != nil {
			return nil, err
		}
	}
	if err := generate(root, work); err != nil {
		return nil, err
	}
	files, err := readSite(filepath.Join(work, "site"))
	if err != nil {
		return nil, err
	}
	files = finish(files)
	if wrong := check(files); len(wrong) > 0 {
		return nil, fmt.Errorf("the site is wrong:\n  %s", strings.Join(wrong, "\n  "))
	}
	return files, nil
}

// generate runs MkDocs in work, whose warnings are errors.
func generate(root, work string) error {
	program, err := filepath.Abs(filepath.Join(root, "bin/mkdocs"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), program, "build", "--quiet", "--config-file", filepath.Join(work, "mkdocs.yml")) //nolint:gosec // the project's own
	// The theme advertises its successor otherwise.
	cmd.Env = append(os.Environ(), "NO_MKDOCS_2_WARNING=1", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bin/mkdocs (make mkdocs fetches it): %w\n%s", err, out)
	}
	return nil
}

func write(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644) //nolint:gosec // it is public
}
