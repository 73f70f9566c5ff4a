package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// workshop is the copy of a work tree in which the mutants are applied.
type workshop struct {
	dir  string
	bins string // compiled specs
}

// passable lets other users pass through but list nothing: the database server of the specs does not run as root.
const passable = 0o711

// copyTree copies the files that git tracks or would add to an empty directory. bin/ becomes a link to that of the
// work tree.
func copyTree(ctx context.Context, root, dir string) error {
	list, err := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("listing the files of %s: %w", root, err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	return os.Symlink(filepath.Join(root, "bin"), filepath.Join(dir, "bin"))
}

func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted, and still in the index
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// newWorkshop copies the work tree into a temporary directory.
func newWorkshop(ctx context.Context, root string) (*workshop, error) {
	tmp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	w := &workshop{dir: filepath.Join(tmp, "tree"), bins: filepath.Join(tmp, "specs")}
	err = errors.Join(os.Mkdir(w.dir, passable), os.Chmod(tmp, passable))
	if err == nil {
		err = copyTree(ctx, root, w.dir)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *workshop) close() error { return os.RemoveAll(filepath.Dir(w.dir)) }

// change applies a mutant and returns a function that undoes it.
func (w *workshop) change(m mutant) (undo func() error, err error) {
	path := filepath.Join(w.dir, m.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	write := func(s string) error { return os.WriteFile(path, []byte(s), info.Mode().Perm()) }
	return func() error { return write(string(text)) }, write(strings.Replace(string(text), m.old, m.new, 1))
}

// compile builds the specs of a package and returns the program. The error contains the compiler's output.
func (w *workshop) compile(ctx context.Context, dir string) (string, error) {
	bin := filepath.Join(w.bins, strings.ReplaceAll(dir, "/", "-"))
	if err := os.MkdirAll(w.bins, 0o700); err != nil {
		return "", err
	}
	// Without the path of the copy in them, the packages of the last run are still in the build cache.
	out, err := w.run(ctx, w.dir, "go", "test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./"+dir)
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
}

// test runs compiled specs until the first failure. Several focuses are combined.
func (w *workshop) test(ctx context.Context, bin, dir string, focuses ...string) (out string, err error) {
	args := []string{"-ginkgo.fail-fast", "-ginkgo.no-color"}
	for _, focus := range focuses {
		if focus != "" {
			args = append(args, "-ginkgo.focus", focus)
		}
	}
	return w.run(ctx, filepath.Join(w.dir, dir), bin, args...)
}

// run runs a program; it and all that it started are killed with ctx.
func (w *workshop) run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}
