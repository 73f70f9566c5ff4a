package testkit

import "syscall"

// sysProcAttr ends the child when the test's process ends without having
// stopped it.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
