package client

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files says which files make a document.
type Files struct {
	// Paths are files, directories, and - for standard input. A
	// directory stands for its .yaml, .yml and .json files, except hidden ones.
	Paths []string
	// Recursive includes the files of subdirectories.
	Recursive bool
	// Env looks up variables for values with a tag, as os.LookupEnv; nil refuses such values.
	Env func(name string) (value string, set bool)
}

// mostSkipped is how many names a line about skipped ones has.
const mostSkipped = 5

// list returns the files, and a line for each kind of thing that it skips.
func (f Files) list() (files, skipped []string, err error) {
	for _, path := range f.Paths {
		if path == "-" {
			files = append(files, path)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		l, err := f.directory(path)
		if err != nil {
			return nil, nil, err
		}
		files, skipped = append(files, l.files...), append(skipped, l.skipped()...)
	}
	return files, skipped, nil
}

// listing is what is in a directory.
type listing struct {
	// files are the documents, sorted by path.
	files []string
	// below are directories that are not read, links those behind a symbolic
	// link, others files that are no documents. What is hidden is none of them.
	below, links, others []string
}

// directory lists the documents of a directory. Links to directories are not
// followed.
func (f Files) directory(dir string) (listing, error) {
	var l listing
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == dir:
		case strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir():
			if !f.Recursive {
				l.below = append(l.below, path)
				return fs.SkipDir
			}
		case isDirectoryLink(path, e):
			l.links = append(l.links, path)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			l.files = append(l.files, path)
		default:
			l.others = append(l.others, path)
		}
		return nil
	})
	switch {
	case err != nil:
		return l, err
	case len(l.files) == 0 && len(l.below) > 0:
		return l, fmt.Errorf("the directory %s has no .yaml, .yml or .json file; --recursive reads the directories in it",
			dir)
	case len(l.files) == 0:
		return l, fmt.Errorf("the directory %s has no .yaml, .yml or .json file", dir)
	}
	return l, nil
}

func isDirectoryLink(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (l listing) skipped() []string {
	var lines []string
	for _, kind := range []struct {
		paths []string
		why   string
	}{
		{l.below, "directories below a directory are read only with -R"},
		{l.links, "links to directories are not followed"},
		{l.others, "only .yaml, .yml and .json files are read"},
	} {
		if len(kind.paths) == 0 {
			continue
		}
		names := strings.Join(kind.paths[:min(len(kind.paths), mostSkipped)], ", ")
		if more := len(kind.paths) - mostSkipped; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, "skipped "+names+": "+kind.why)
	}
	return lines
}
