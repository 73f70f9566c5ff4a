package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// claimSuffix is appended to the name of the database for the name of its claim.
	claimSuffix = ".lock"
	// claimWait is how long Claim waits for a process that is about to stop.
	claimWait = time.Second
	// maxClaim bounds what is read of a claim, in bytes.
	maxClaim = 1 << 10
)

// Claim makes this process the only server of an SQLite file until release, or until
// the process ends in any way: the lock is the kernel's. as is what others are told,
// for example "gatehouse serve". The database file is created if it does not exist.
// PostgreSQL allows any number of servers, and there Claim does nothing. It leaves an
// invalid URL to Open.
func Claim(ctx context.Context, databaseURL, as string) (release func() error, err error) {
	nothing := func() error { return nil }
	u, err := url.Parse(databaseURL)
	if err != nil || u.Scheme != "sqlite" {
		return nothing, nil
	}
	path, err := sqlitePath(u)
	if err != nil {
		return nothing, nil
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	// Two names of one file are the same database.
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("finding the database file: %w", err)
	}
	f, err := os.OpenFile(file+claimSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, claimError(file, err)
	}
	if err := lockWithin(ctx, f, claimWait); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = takenError(file, readClaim(f))
		} else {
			err = claimError(file, err)
		}
		return nil, errors.Join(err, f.Close())
	}
	if err := writeClaim(f, as); err != nil {
		return nil, errors.Join(claimError(file, err), f.Close())
	}
	return f.Close, nil // this releases the lock
}

// ClaimHolder describes the process that has a claim on the database; empty means that
// none has, or that the database allows many servers.
func ClaimHolder(databaseURL string) (holder string, err error) {
	u, err := url.Parse(databaseURL)
	if err != nil || u.Scheme != "sqlite" {
		return "", nil
	}
	file, err := filepath.EvalSymlinks(u.Path)
	if err != nil {
		return "", nil // there is no database to claim
	}
	f, err := os.Open(file + claimSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", claimError(file, err)
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return readClaim(f), nil
	}
	return "", err
}

// lockWithin locks f, or returns EWOULDBLOCK if another process keeps the lock for
// longer than wait.
func lockWithin(ctx context.Context, f *os.File, wait time.Duration) error {
	end := time.NewTimer(wait)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return err
		case <-tick.C:
		}
	}
}

// writeClaim writes who has the lock: process, machine and command, on one line.
func writeClaim(f *os.File, as string) error {
	host, _ := os.Hostname() // for readers only; it may be empty
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\t%s\t%s\n", os.Getpid(), host, as), 0)
	return err
}

// readClaim describes who wrote the claim.
func readClaim(f *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxClaim))
	parts := strings.Split(strings.TrimSuffix(string(text), "\n"), "\t")
	if err != nil || len(parts) != 3 {
		return "another process"
	}
	where := ""
	if host, err := os.Hostname(); err != nil || host != parts[1] {
		where = " on " + parts[1]
	}
	return "process " + parts[0] + where + " (" + parts[2] + ")"
}

func takenError(path, holder string) error {
	return &model.Error{
		Kind: model.Conflict, Message: "the database " + path + " is used by " + holder + ", and one server at a time may use an SQLite file",
		Hint: "stop that process, choose another directory with --data-dir, or use PostgreSQL with --database-url, which several servers may share",
	}
}

func claimError(path string, err error) error {
	return &model.Error{
		Kind: model.Unavailable, Message: "the database " + path + " cannot be locked for this process",
		Hint: "the user that runs the program needs to write " + path + claimSuffix + ", on a file system that has locks", Err: err,
	}
}
