package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	runPrefix = "gatehouse-run-"
	// newPrefix is the prefix of a directory that is not locked yet.
	newPrefix = ".gatehouse-new-"
	// newFor is how long a directory stays unlocked at most.
	newFor = time.Minute
	// maxSocketPath is the longest path of a Unix socket on Linux; other systems allow
	// less.
	maxSocketPath = 103
	// longestFile is the longest name of a socket in a RunDir.
	longestFile = "ratelimit.sock"
)

// RunDir is a directory for files that live as long as the process, such as Unix
// sockets. Only this user can enter it. It is locked: an unlocked directory belongs to
// a process that was killed.
type RunDir struct {
	path string
	lock *os.File
}

// OpenRunDir makes a directory in the directory for temporary files, and removes those
// of killed processes there.
func OpenRunDir(log *slog.Logger) (*RunDir, error) {
	parent := os.TempDir()
	if !fitsSocket(parent) {
		// The path of a socket must be short, whatever TMPDIR is.
		parent = "/tmp"
	}
	sweep(parent, log)
	d, err := makeRunDir(parent)
	if err != nil {
		return nil, fmt.Errorf("making a directory for sockets: %w; set TMPDIR to a directory that can be written to, "+
			"with a path of at most %d characters",
			err, maxSocketPath-len(filepath.Join("/", runPrefix+"0123456789", longestFile)))
	}
	return d, nil
}

// AdminSocket is the name of the socket of Envoy's admin endpoint in a RunDir.
const AdminSocket = "admin.sock"

func fitsSocket(parent string) bool {
	return len(filepath.Join(parent, runPrefix+"0123456789", longestFile)) <= maxSocketPath
}

// makeRunDir gives the directory its name after locking it, so that other processes
// never find it unlocked.
func makeRunDir(parent string) (*RunDir, error) {
	made, err := os.MkdirTemp(parent, newPrefix)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent, runPrefix+strings.TrimPrefix(filepath.Base(made), newPrefix))
	lock, err := lockDir(made)
	if err == nil && lock == nil {
		err = errors.New("another process has locked it")
	}
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(made))
	}
	return &RunDir{path, lock}, nil
}

// Join returns the path of a file in the directory.
func (d *RunDir) Join(name string) string { return filepath.Join(d.path, name) }

// Close removes the directory with its contents.
func (d *RunDir) Close() error {
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}

// sweep removes what killed processes of this user left. Files that it cannot remove do
// no harm.
func sweep(parent string, log *slog.Logger) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // making a directory there reports why
	}
	for _, e := range entries {
		isNew := strings.HasPrefix(e.Name(), newPrefix)
		if !e.IsDir() || !isNew && !strings.HasPrefix(e.Name(), runPrefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		info, err := e.Info()
		if err != nil || !isOwn(info) || isNew && time.Since(info.ModTime()) < newFor {
			continue
		}
		lock, err := lockDir(path)
		if lock == nil || err != nil {
			continue // its process is alive
		}
		err = errors.Join(os.RemoveAll(path), lock.Close())
		switch {
		case err == nil:
			log.Info("removed what a killed process left", "dir", path)
		case !errors.Is(err, fs.ErrNotExist):
			log.Warn("cannot remove what a killed process left", "dir", path, "err", err)
		}
	}
}
