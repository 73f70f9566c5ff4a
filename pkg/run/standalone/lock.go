package standalone

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockDir locks a directory until the file is closed or the process ends; nil if
// another process has locked it. A symbolic link is not followed.
func lockDir(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close() // it was only opened
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// isOwn reports whether a file belongs to this user.
func isOwn(info fs.FileInfo) bool { return isOf(info, os.Geteuid()) }

func isOf(info fs.FileInfo, user int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == user
}
