//go:build !linux

package postgres

import "syscall"

// sysProcAttr drops root, which PostgreSQL refuses to run as.
func sysProcAttr(uid int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if uid != 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return attr
}
