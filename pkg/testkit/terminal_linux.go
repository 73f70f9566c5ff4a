package testkit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// SpawnOnTerminal is SpawnGatehouse with both outputs on one terminal. Stdout has the
// terminal's output, with lines that end in
// .
func SpawnOnTerminal(env []string, args ...string) (*Process, error) {
	path, err := Binary("gatehouse")
	if err != nil {
		return nil, err
	}
	screen, terminal, err := openTerminal()
	if err != nil {
		return nil, err
	}
	p := newProcess(path, append(ownEnviron(), append([]string{"TERM=xterm"}, env...)...), args...)
	p.cmd.Stdout, p.cmd.Stderr = terminal, terminal
	if err := errors.Join(p.start(), terminal.Close()); err != nil {
		return nil, errors.Join(err, screen.Close())
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		buffer := make([]byte, 4096)
		for {
			n, err := screen.Read(buffer)
			_, _ = p.Stdout.Write([]byte(strings.ReplaceAll(string(buffer[:n]), "\r\n", "\n")))
			if err != nil { // EIO: no process has the terminal open anymore
				return
			}
		}
	}()
	p.shown = shown
	go func() {
		<-shown
		_ = screen.Close()
	}()
	return p, nil
}

// openTerminal makes a pseudoterminal: output to terminal can be read from screen.
func openTerminal() (screen, terminal *os.File, err error) {
	const (
		unlock = 0x40045431 // TIOCSPTLCK
		number = 0x80045430 // TIOCGPTN
	)
	if screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, fmt.Errorf("making a terminal: %w", err)
	}
	var zero, n int32
	for request, value := range map[uintptr]*int32{unlock: &zero, number: &n} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 { //nolint:gosec // the kernel writes an int there
			return nil, nil, errors.Join(fmt.Errorf("making a terminal: %w", errno), screen.Close())
		}
	}
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("making a terminal: %w", err), screen.Close())
	}
	return screen, terminal, nil
}
