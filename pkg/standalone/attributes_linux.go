package standalone

import "syscall"

// childAttributes puts the child into a process group of its own and has the
// kernel kill it when this program dies, even of kill -9: an Envoy left alone
// would keep the ports.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
