package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// LogDir returns the path of a directory in which Envoy may open files for access logs, or an empty one if it must not:
// then it logs why. Envoy would refuse a listener whose file it cannot open, follow a link, and stop to answer on its
// admin port for a named pipe, so others must not be able to put one there.
func LogDir(dir string, log *slog.Logger) string {
	if dir == "" {
		return ""
	}
	path, err := checkLogDir(dir)
	if err != nil {
		log.Error("the directory for access logs is not used, and the control plane is told that this envoy has none: "+
			"its lines go to standard output; correct it and restart", "setting", "access-log-dir", "dir", dir, "err", err)
		return ""
	}
	return path
}

const (
	byOthers = 0o002
	root     = 0
)

func checkLogDir(dir string) (path string, err error) {
	if path, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	switch {
	case !info.IsDir():
		return "", errors.New("is not a directory")
	case info.Mode().Perm()&byOthers != 0:
		return "", fmt.Errorf("every user can write to it (%s): chmod o-w", info.Mode().Perm())
	case !isOf(info, os.Geteuid()) && !isOf(info, root):
		return "", errors.New("belongs to another user than this one or root")
	}
	for above := filepath.Dir(path); above != filepath.Dir(above); above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return "", err
		}
		if info.Mode().Perm()&byOthers != 0 && info.Mode()&fs.ModeSticky == 0 {
			return "", fmt.Errorf("every user can replace it, since %s is writable (%s): chmod o-w", above, info.Mode().Perm())
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".log") && !e.Type().IsRegular() {
			return "", fmt.Errorf("%s in it is not a plain file: remove it", e.Name())
		}
	}
	return path, tryWriting(path)
}

// tryWriting makes a file and removes it.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".gatehouse-check-")
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return fmt.Errorf("cannot be written to: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
