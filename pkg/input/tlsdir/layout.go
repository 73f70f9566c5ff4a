package tlsdir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// files are the two halves of a pair. The path of a missing half is empty.
type files struct {
	// name is the name of the secret.
	name      string
	cert, key string
}

// note is something in the directory that is not a pair.
type note struct {
	path, text string
	// wrong says that an operator must act.
	wrong bool
}

// layout is the contents of a directory.
type layout struct {
	// pairs are sorted by name, without duplicates.
	pairs []files
	// notes are sorted by path.
	notes []note
	// dirs are the directories whose changes matter.
	dirs []string
}

// find finds the pairs of a directory. It opens no file.
func find(dir string) (layout, error) {
	var l layout
	if err := l.addRoot(dir); err != nil {
		return layout{}, err
	}
	l.removeTwins()
	slices.SortFunc(l.notes, func(a, b note) int { return cmp.Compare(a.path, b.path) })
	slices.Sort(l.dirs)
	l.dirs = slices.Compact(l.dirs)
	return l, nil
}

// liveDir is certbot's directory of the current pairs.
const liveDir = "live"

func (l *layout) addRoot(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	l.dirs = append(l.dirs, dir)
	flat := map[string]*files{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue // ..data of Kubernetes, and temporary files of editors and copies
		}
		info, err := os.Stat(path)
		if _, still := os.Lstat(path); errors.Is(still, fs.ErrNotExist) {
			continue // it was moved meanwhile
		}
		switch {
		case err != nil:
			l.note(path, true, "cannot be read: %s", pathCause(err))
		case info.IsDir() && e.Name() == liveDir:
			err = l.addRoot(path)
		case info.IsDir():
			err = l.addDir(path)
		default:
			l.addFile(flat, path, e.Name())
		}
		if err != nil && info != nil {
			l.note(path, true, "cannot be read: %s", pathCause(err))
		}
	}
	for _, p := range flat {
		l.addPair(*p)
	}
	return nil
}

// addFile adds a file to the pair of which it is a half.
func (l *layout) addFile(flat map[string]*files, path, base string) {
	end := filepath.Ext(base)
	name := strings.TrimSuffix(base, end)
	if end != ".crt" && end != ".pem" && end != ".key" {
		l.note(path, false, "is not part of a pair: expected NAME.crt or NAME.pem, with NAME.key")
		return
	}
	p := flat[name]
	if p == nil {
		p = &files{name: name}
		flat[name] = p
	}
	switch {
	case end == ".key":
		p.key = path
	case p.cert == "":
		p.cert = path
	default: // .crt comes first
		l.note(path, true, "is beside %s: one of the two has to go; %s is used", filepath.Base(p.cert), filepath.Base(p.cert))
	}
}

// addDir adds the pair in a subdirectory.
func (l *layout) addDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	l.dirs = append(l.dirs, dir)
	has := map[string]bool{}
	for _, e := range entries {
		has[e.Name()] = true
	}
	var half *files
	for _, names := range [][2]string{{"fullchain.pem", "privkey.pem"}, {"tls.crt", "tls.key"}} {
		p := files{name: filepath.Base(dir)}
		if has[names[0]] {
			p.cert = filepath.Join(dir, names[0])
		}
		if has[names[1]] {
			p.key = filepath.Join(dir, names[1])
		}
		if p.cert != "" && p.key != "" {
			l.addPair(p)
			return nil
		}
		if half == nil && (p.cert != "" || p.key != "") {
			half = &p
		}
	}
	if half != nil {
		l.addPair(*half)
		return nil
	}
	l.note(dir, false, "has no pair: expected fullchain.pem with privkey.pem, or tls.crt with tls.key")
	return nil
}

// addPair adds a pair if its name is valid for a secret.
func (l *layout) addPair(p files) {
	for _, bad := range (&model.Secret{Name: p.name}).Validate() {
		l.note(cmp.Or(p.cert, p.key), true, "has a name that no secret can have: %s; rename the files", bad.Message)
		return
	}
	l.pairs = append(l.pairs, p)
	for _, path := range []string{p.cert, p.key} {
		if path == "" {
			continue
		}
		// The target of a symbolic link may change without the link.
		if target, err := filepath.EvalSymlinks(path); err == nil {
			l.dirs = append(l.dirs, filepath.Dir(target))
		}
	}
}

// removeTwins keeps the first of the pairs with the same name, complete ones before
// halves.
func (l *layout) removeTwins() {
	halves := func(p files) int { return map[bool]int{true: 1}[p.cert == "" || p.key == ""] }
	slices.SortFunc(l.pairs, func(a, b files) int {
		return cmp.Or(cmp.Compare(a.name, b.name), halves(a)-halves(b), cmp.Compare(a.cert+a.key, b.cert+b.key))
	})
	l.pairs = slices.CompactFunc(l.pairs, func(twin, first files) bool {
		if twin.name != first.name {
			return false
		}
		l.note(cmp.Or(twin.cert, twin.key), true, "is of a pair with the name %s, and so is %s, which is used; "+
			"rename one of the two", first.name, cmp.Or(first.cert, first.key))
		return true
	})
}

func (l *layout) note(path string, wrong bool, format string, args ...any) {
	l.notes = append(l.notes, note{path, fmt.Sprintf(format, args...), wrong})
}
