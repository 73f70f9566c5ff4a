//go:build !linux

package standalone

import "syscall"

// childAttributes puts the child into a process group of its own.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
