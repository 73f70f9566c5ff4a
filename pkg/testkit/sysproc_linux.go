package testkit

import (
	"errors"
	"fmt"
	"syscall"
)

// sysProcAttr kills the child when the test's process ends without having stopped it.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// awaitStopped returns when all threads of a child have stopped: after SIGSTOP
// some of them run on for a moment.
func awaitStopped(pid int) error {
	const (
		idIsPid = 1          // P_PID
		stopped = 2          // WSTOPPED
		noReap  = 0x01000000 // WNOWAIT
	)
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, idIsPid, uintptr(pid), 0, stopped|noReap, 0, 0) //nolint:gosec // positive
		switch {
		case err == 0:
			return nil
		case !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("waiting until process %d has stopped: %w", pid, err)
		}
	}
}
