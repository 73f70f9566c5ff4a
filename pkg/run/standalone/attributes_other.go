//go:build !linux

package standalone

import "syscall"

// childAttributes puts the child into its own process group.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
