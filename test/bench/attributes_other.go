//go:build !linux

package main

import (
	"syscall"
	"time"
)

// childAttributes keeps Ctrl-C from the children, which this process stops itself.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// nap sleeps for a short time.
func nap(d time.Duration) { time.Sleep(d) }
