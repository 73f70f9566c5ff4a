package main

import (
	"syscall"
	"time"
)

// childAttributes keeps Ctrl-C from the children, which this process stops itself, and
// lets the kernel kill them when this process is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// nap sleeps for less than a millisecond, which Go's own timers would round up.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a shorter sleep does no harm
}
