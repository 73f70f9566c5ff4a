// Command console packs what Vite built of console/ into the zip that the program serves (ADR 0130). With --check it
// writes nothing, and fails if the zip has other files.
//
// usage: console [--check] DIR ZIP
package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/hack/pack"
)

// firstPageBound is how many bytes a browser loads before it shows anything, compressed.
const firstPageBound = 300_000

func main() {
	args := os.Args[1:]
	check := len(args) > 0 && args[0] == "--check"
	if check {
		args = args[1:]
	}
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: console [--check] DIR ZIP")
		os.Exit(2)
	}
	if err := run(args[0], args[1], check); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(dir, packed string, check bool) error {
	files, err := built(dir)
	if err != nil {
		return err
	}
	first, all, err := sizes(files)
	if err != nil {
		return err
	}
	if first > firstPageBound {
		return fmt.Errorf("the first page has %d bytes (gzip), and may have %d: load a part of it later", first, firstPageBound)
	}
	if check {
		return compare(files, packed)
	}
	content, err := pack.Zip(files)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %d kB, %d kB of files; the first page is %d of %d kB (gzip)\n",
		packed, len(content)/1000, all/1000, first/1000, firstPageBound/1000)
	return os.WriteFile(packed, content, 0o644) //nolint:gosec // it is public
}

// built returns the files in a folder by their names.
func built(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(path) //nolint:gosec // a file of the build
		return err
	})
	return files, err
}

// loaded finds the files that the page names, which a browser loads at once.
var loaded = regexp.MustCompile(`(?:src|href)="\./([^"]+)"`)

// sizes returns the compressed size of the first page, and the size of all files.
func sizes(files map[string][]byte) (first, all int, err error) {
	page, ok := files["index.html"]
	if !ok {
		return 0, 0, errors.New("there is no index.html")
	}
	names := []string{"index.html"}
	for _, m := range loaded.FindAllSubmatch(page, -1) {
		names = append(names, string(m[1]))
	}
	for _, name := range names {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return 0, 0, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return 0, 0, err
		}
		if err := w.Close(); err != nil {
			return 0, 0, err
		}
		first += out.Len()
	}
	for _, content := range files {
		all += len(content)
	}
	return first, all, nil
}

// compare reports how a zip differs from files. Their bytes are compared, and not those of the zip: another version
// of Go may compress them in another way.
func compare(files map[string][]byte, packed string) error {
	archive, err := zip.OpenReader(packed)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }() // nothing is written
	left := maps.Clone(files)
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if want, ok := left[f.Name]; !ok || !bytes.Equal(content, want) {
			return fmt.Errorf("%s has another %s than console/ makes: run make console, and commit it", packed, f.Name)
		}
		delete(left, f.Name)
	}
	if len(left) > 0 {
		return fmt.Errorf("%s lacks %v: run make console, and commit it", packed, slices.Sorted(maps.Keys(left)))
	}
	return nil
}
