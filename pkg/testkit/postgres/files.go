package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// version is the PostgreSQL that hack/postgres.sh fetches.
	version = "18.4"

	// BinVariable names the environment variable that overrides the directory of initdb
	// and postgres.
	BinVariable = "GATEHOUSE_TEST_POSTGRES_BIN"

	// nobody is the user that the server runs as when the tests run as root.
	nobody = 65534
)

// findBin returns the directory of initdb and postgres.
func findBin() (string, error) {
	if dir := os.Getenv(BinVariable); dir != "" {
		return dir, hasServer(dir, BinVariable+" should name the directory of initdb and postgres")
	}
	root, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for PostgreSQL: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return "", errors.New("looking for PostgreSQL: no go.mod above the working directory; set " + BinVariable)
		}
		root = filepath.Dir(root)
	}
	dir := filepath.Join(root, "bin", "postgres", version, "bin")
	return dir, hasServer(dir, "fetch it with hack/postgres.sh, or run make test, which does")
}

// Program returns the path of a program that comes with the server, such as pg_dump.
func Program(name string) (string, error) {
	dir, err := findBin()
	return filepath.Join(dir, name), err
}

func hasServer(dir, hint string) error {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("looking for PostgreSQL: %w; %s", err, hint)
		}
	}
	return nil
}

// share makes dir accessible to another user: temporary directories are closed to
// others, all the way up to the system's own.
func share(dir string) error {
	for p := dir; p != filepath.Clean(os.TempDir()) && p != filepath.Dir(p); p = filepath.Dir(p) {
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		if info.Mode()&0o001 != 0 {
			continue
		}
		if err := os.Chmod(p, info.Mode().Perm()|0o011); err != nil {
			return err
		}
	}
	return nil
}

// reachable reports whether every user can enter dir.
func reachable(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// reachableBin returns bin, or a copy of its installation within dir if others cannot
// enter it, as in a checkout below root's home.
func reachableBin(bin, dir string) (string, error) {
	if reachable(bin) {
		return bin, nil
	}
	to := filepath.Join(dir, "server")
	if err := os.CopyFS(to, os.DirFS(filepath.Dir(bin))); err != nil {
		return "", fmt.Errorf("copying PostgreSQL: %w", err)
	}
	return filepath.Join(to, filepath.Base(bin)), nil
}

// tail returns the end of a log file, for an error.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	const keep = 2000
	return string(b[max(0, len(b)-keep):])
}
