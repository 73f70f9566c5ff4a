//go:build !linux

package testkit

import "syscall"

func sysProcAttr() *syscall.SysProcAttr { return nil }

func awaitStopped(int) error { return nil }
