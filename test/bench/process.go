package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopWait is how long a process may take to exit after SIGTERM.
const stopWait = 15 * time.Second

// process is a running program. Its standard output is discarded, and its standard
// error goes to a file.
type process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{} // closed when it has ended
}

func startProcess(name, log, path string, args ...string) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	defer func() { _ = file.Close() }() // the child has its own
	p := &process{name: name, log: log, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stderr = file
	p.cmd.SysProcAttr = childAttributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop stops the process and waits for its exit.
func (p *process) stop() error {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stopping %s: %w", p.name, err)
		}
		limit := time.NewTimer(stopWait)
		select {
		case <-p.done:
			limit.Stop()
			return nil
		case <-limit.C:
		}
	}
	return fmt.Errorf("stopping %s: process %d survived SIGKILL", p.name, p.cmd.Process.Pid)
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// usage is what a process has used so far.
type usage struct {
	cpu time.Duration
	// rss is the current resident memory, peak its maximum; in bytes.
	rss, peak float64
}

// clockTick is the unit of times in /proc/PID/stat, on every Linux of today.
const clockTick = 10 * time.Millisecond

func (p *process) usage() (usage, error) { return usageOf(p.name, p.cmd.Process.Pid) }

func usageOf(name string, pid int) (usage, error) {
	var u usage
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return u, fmt.Errorf("reading the CPU time of %s: %w", name, err)
	}
	if u.cpu, err = cpuTime(stat); err != nil {
		return u, fmt.Errorf("reading the CPU time of %s: %w", name, err)
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return u, fmt.Errorf("reading the memory of %s: %w", name, err)
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		to := map[string]*float64{"VmRSS": &u.rss, "VmHWM": &u.peak}[key]
		if to == nil {
			continue
		}
		kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return u, fmt.Errorf("reading the memory of %s: %w", name, err)
		}
		*to = kb * 1024
	}
	return u, nil
}

// mainThread returns the CPU time of the main thread, which in an Envoy reads the
// configuration.
func (p *process) mainThread() (time.Duration, error) {
	return threadTime(fmt.Sprintf("/proc/%d/schedstat", p.cmd.Process.Pid))
}

// threads returns the CPU time of all running threads, which is more exact than usage.
func (p *process) threads() (sum time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, file := range files {
		d, err := threadTime(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, err
}

// threadTime reads the first number of a schedstat, in nanoseconds
// (Documentation/scheduler/sched-stats.rst of Linux).
func threadTime(file string) (time.Duration, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of a thread: %w", err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of a thread in %s: %w", file, err)
	}
	return time.Duration(n), nil
}

// idle waits until the process has stopped working.
func (p *process) idle(ctx context.Context) error {
	const interval, little = 200 * time.Millisecond, 10 * time.Millisecond
	before, err := p.threads()
	for err == nil {
		if err = sleep(ctx, interval); err != nil {
			break
		}
		var now time.Duration
		if now, err = p.threads(); now-before < little {
			break
		}
		before = now
	}
	return err
}

// forgetPeak resets the peak to the current memory (proc(5), clear_refs).
func (p *process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}

// children returns the processes that a process has started.
func children(pid int) (pids []int, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return nil, fmt.Errorf("reading the children of process %d: %w", pid, err)
			}
			pids = append(pids, child)
		}
	}
	return pids, err
}

// cpuTime returns the user and kernel time in /proc/PID/stat (proc(5): fields 14 and
// 15; the second field, a name in brackets, may contain anything).
func cpuTime(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, errors.New("too few fields")
	}
	var ticks time.Duration
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += time.Duration(n)
	}
	return ticks * clockTick, nil
}
