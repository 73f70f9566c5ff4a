package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// lab starts what is measured, and stops all of it.
type lab struct {
	opts    options
	dir     string
	machine machine
	backend *backend
	runs    []*process
	// ends stop everything else that was started, the last one first.
	ends    []func() error
	started int
	// summary has the program's costs, from the parts that measured them.
	summary rows
}

// machine describes where the numbers come from.
type machine struct {
	CPUs  int    `json:"cpus"`
	Go    string `json:"go"`
	Envoy string `json:"envoy"`
	// FsyncMS is the median time, in milliseconds, to make a small write to
	// the directory of the databases survive a power cut.
	FsyncMS float64 `json:"fsync_ms"`
}

func newLab(ctx context.Context, opts options) (*lab, error) {
	for flag, path := range map[string]*string{"gatehouse": &opts.gatehouse, "floor": &opts.floor, "envoys": &opts.envoys, "envoy": &opts.envoy} {
		found, err := exec.LookPath(*path)
		if err != nil {
			return nil, fmt.Errorf("looking for --%s: %w: `make bench` builds what is needed", flag, err)
		}
		if *path, err = filepath.Abs(found); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "gatehouse-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{opts: opts, dir: dir, machine: machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), Envoy: envoy.Version}}
	if l.machine.FsyncMS, err = fsyncTime(dir); err == nil {
		l.backend, err = newBackend(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return l, nil
}

func fsyncTime(dir string) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var times []float64
	for range 50 {
		began := time.Now()
		if _, err := f.WriteString("4 kB or less, like a small transaction\n"); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("timing the disk: %w", err)
		}
		times = append(times, ms(time.Since(began)))
	}
	return quantile(times, 0.5), nil
}

// close stops everything and removes the directory.
func (l *lab) close() error {
	errs := []error{l.stop(l.runs...)}
	for _, end := range slices.Backward(l.ends) {
		errs = append(errs, end())
	}
	l.backend.close()
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// run starts a program that the lab stops.
func (l *lab) run(name, path string, args ...string) (*process, error) {
	l.started++
	p, err := startProcess(name, l.file(name+".log"), path, args...)
	if err == nil {
		l.runs = append(l.runs, p)
	}
	return p, err
}

// stop stops processes, the last one first.
func (l *lab) stop(list ...*process) error {
	var errs []error
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] != nil {
			errs = append(errs, list[i].stop())
		}
	}
	var left []*process
	for _, p := range l.runs {
		if !p.ended() {
			left = append(left, p)
		}
	}
	l.runs = left
	return errors.Join(errs...)
}

// file returns a new name in the lab's directory.
func (l *lab) file(name string) string {
	l.started++
	return filepath.Join(l.dir, strconv.Itoa(l.started)+"-"+name)
}

// printLogs shows the last lines of the programs that still run, and of those that
// died.
func (l *lab) printLogs(to io.Writer) {
	const lines = 5
	for _, p := range l.runs {
		text, err := os.ReadFile(p.log)
		if err != nil {
			continue
		}
		list := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		fmt.Fprintf(to, "--- %s (pid %d, ended: %t)\n%s\n", p.name, p.cmd.Process.Pid, p.ended(),
			bytes.Join(list[max(0, len(list)-lines):], []byte("\n")))
	}
}

// runEnvoy starts an Envoy in the same way for every side. args are additional flags.
func (l *lab) runEnvoy(name string, config []byte, concurrency int, args ...string) (*process, error) {
	file := l.file("envoy.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	return l.run(name, l.opts.envoy, append([]string{
		"-c", file, "--disable-hot-restart", "--log-level", "warning", "--concurrency", strconv.Itoa(concurrency),
	}, args...)...)
}

func bootstrap(xdsAddr, adminSocket string) ([]byte, error) {
	return envoy.Bootstrap(envoy.Params{Node: layout.Node, XDSAddr: xdsAddr, AdminSocket: adminSocket})
}

// local is an address of this machine.
func local(port int) string { return layout.Address + ":" + strconv.Itoa(port) }

// ports returns n free ports.
func ports(n int) ([]int, error) {
	list := make([]int, n)
	for i := range list {
		port, err := testkit.FreePort()
		if err != nil {
			return nil, err
		}
		list[i] = port
	}
	return list, nil
}
