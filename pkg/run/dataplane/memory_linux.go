package dataplane

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns an empty file that exists only in memory, until the last process
// that has it open exits. kept says that it stays open when another program replaces
// this one.
func memoryFile(name string, kept bool) (*os.File, error) {
	flags := unix.MFD_CLOEXEC
	if kept {
		flags = 0
	}
	fd, err := unix.MemfdCreate(name, flags)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
