package main

import (
	"syscall"
	"time"
)

// childAttributes keeps Ctrl-C from the children, which this process ends
// itself, and has the kernel end them when this process is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// nap sleeps for less than a millisecond, which Go's own timers make one of.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // one that is cut short is as good
}
