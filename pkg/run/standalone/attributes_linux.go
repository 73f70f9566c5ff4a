package standalone

import "syscall"

// childAttributes puts the child into its own process group and lets the kernel kill it
// when this program dies, even by kill -9: an orphaned Envoy would keep the ports.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
