package postgres

import "syscall"

// sysProcAttr drops root, which PostgreSQL refuses to run as, and kills the server when
// the test's process ends without having stopped it.
func sysProcAttr(uid int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if uid != 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return attr
}
