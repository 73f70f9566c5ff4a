package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
)

// RunOptions say how to run an Envoy.
type RunOptions struct {
	// Path is the program; empty means that standalone.FindEnvoy searches for it.
	Path string
	// Params are for its bootstrap. Envoy watches its certificates.
	Params envoy.Params
	// Args are additional arguments for it.
	Args []string
	// Drain is how long running requests may take when ctx ends; 0 means that Envoy
	// replaces this process, with its signals and its exit code.
	Drain time.Duration
	// Init says that this process is process 1 of a container, which inherits orphans.
	// An Envoy that replaces it does not reap them.
	Init bool
	// CountryDatabase and ASNDatabase are files of which Envoy gets checked copies; empty means none. With one, this
	// process stays as Envoy's parent, and Drain 0 means 5 s.
	CountryDatabase, ASNDatabase string
	// LogDir is a directory for access logs; empty means none.
	LogDir string
	Log    *slog.Logger
}

// Run replaces this process with an Envoy: it returns only if that fails. With a time to
// drain it instead runs Envoy as a child until Envoy exits or ctx ends, and returns the
// exit code: 128 plus the number of the signal if a signal ended it.
func Run(ctx context.Context, o RunOptions) (code int, err error) {
	if slices.ContainsFunc(o.Args, func(a string) bool { return a == "-c" || isFlag(a, "--config-path") }) {
		return 0, errors.New("Envoy's configuration is the bootstrap that this program makes: leave out -c and --config-path, or start Envoy itself") //nolint:staticcheck // a name
	}
	if o.Path, err = standalone.FindEnvoy(o.Path); err != nil {
		return 0, err
	}
	if o.stays() && o.Params.AdminSocket == "" {
		release, err := openOwnSocket(ctx, &o)
		if err != nil {
			return 0, err
		}
		defer release()
	}
	follow, err := openDatabases(&o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, follow.close()) }()
	o.Params.LogDir = standalone.LogDir(o.LogDir, o.Log)
	if err := removeStale(o.Params.AdminSocket); err != nil {
		return 0, err
	}
	files, err := openFiles(o)
	if err != nil {
		return 0, err
	}
	args := append([]string{"-c", files.path(0)}, arguments(o.Args)...)
	// Envoy does not need the program's own settings: one may be a token.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GATEHOUSE_") })
	if !o.stays() {
		err := syscall.Exec(o.Path, append([]string{o.Path}, args...), env)
		return 0, fmt.Errorf("starting Envoy %s: %w", o.Path, err)
	}
	children := &standalone.Children{}
	if o.Init {
		defer children.StartReaping(o.Log)()
	}
	stop := follow.start(ctx)
	defer stop()
	code, err = standalone.RunForeground(ctx, standalone.EnvoyOptions{
		Path: o.Path, AdminSocket: o.Params.AdminSocket, Log: o.Log, Drain: o.Drain, Children: children,
	}, standalone.Foreground{Args: args, Env: env, Files: files.list})
	return code, errors.Join(err, files.close())
}

// openOwnSocket gives the Envoy an admin socket in a directory of its own, through which
// this process drains it, and serves the admin port for it.
func openOwnSocket(ctx context.Context, o *RunOptions) (release func(), err error) {
	dir, err := standalone.OpenRunDir(o.Log)
	if err != nil {
		return nil, err
	}
	closers := []func() error{dir.Close}
	release = func() {
		for _, c := range slices.Backward(closers) {
			if err := c(); err != nil {
				o.Log.Warn("cleaning up after envoy", "err", err)
			}
		}
	}
	o.Params.AdminSocket = dir.Join(standalone.AdminSocket)
	if o.Params.AdminAddr != "" {
		admin, err := openAdmin(ctx, o.Params.AdminAddr, o.Params.AdminSocket, o.Log)
		if err != nil {
			release()
			return nil, err
		}
		closers = append(closers, admin.close)
	}
	return release, nil
}

// arguments adds those that the operator did not set.
func arguments(given []string) []string {
	var args []string
	for _, more := range [][]string{
		// Without hot restart, Envoys on one machine share nothing.
		{"--disable-hot-restart"},
		// Envoy logs a warning for each failed login, with the query of the request and
		// the identity provider's answer: they may contain codes and tokens.
		{"--component-log-level", "oauth2:error"},
		// By default Envoy buffers lines of the access log for 10 s.
		{"--file-flush-interval-msec", "1000"},
	} {
		if !slices.ContainsFunc(given, func(a string) bool { return isFlag(a, more[0]) }) {
			args = append(args, more...)
		}
	}
	return append(args, given...)
}

func isFlag(arg, name string) bool { return arg == name || strings.HasPrefix(arg, name+"=") }

// removeStale removes the admin socket of a killed Envoy: the next one could not listen
// there.
func removeStale(socket string) error {
	info, err := os.Lstat(socket)
	if socket == "" || err != nil || info.Mode().Type() != fs.ModeSocket {
		return nil //nolint:nilerr // Envoy says what is wrong with it
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("--admin-socket: another process listens at %s: choose another path", socket),
			conn.Close())
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = os.Remove(socket)
	}
	if err != nil {
		return fmt.Errorf("--admin-socket: %w", err)
	}
	return nil
}

// files are the files that Envoy reads at its start, in memory: the bootstrap first.
type files struct {
	list []*os.File
	// child says that Envoy receives them by their position in list.
	child bool
}

// firstChildFile is the number of the first file that a child receives after its
// standard ones.
const firstChildFile = 3

func (f *files) path(i int) string {
	n := firstChildFile + i
	if !f.child {
		n = int(f.list[i].Fd())
	}
	return fmt.Sprintf("/dev/fd/%d", n)
}

func (f *files) close() (err error) {
	for _, file := range f.list {
		err = errors.Join(err, file.Close())
	}
	return err
}

// openFiles writes the bootstrap and the files through which Envoy watches certificates.
// Envoy reads all of them as JSON, because their names have no extension.
func openFiles(o RunOptions) (*files, error) {
	f := &files{child: o.stays()}
	const bootstrapFile, authoritiesFile, certificateFile = 0, 1, 2
	for _, name := range []string{"gatehouse-bootstrap", "gatehouse-xds-ca", "gatehouse-xds-certificate"} {
		file, err := memoryFile(name, !f.child)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("keeping the bootstrap in memory: %w", err), f.close())
		}
		f.list = append(f.list, file)
	}
	p := o.Params
	contents := make([][]byte, len(f.list))
	var err error
	if p.TLS != nil {
		followed := *p.TLS
		if contents[certificateFile], contents[authoritiesFile], err = envoy.Follow(followed, p.XDSAddr); err != nil {
			return nil, errors.Join(err, f.close())
		}
		followed.CAFile = f.path(authoritiesFile)
		if followed.Cert != "" {
			followed.CertFile = f.path(certificateFile)
		}
		p.TLS = &followed
	}
	if contents[bootstrapFile], err = envoy.Bootstrap(p); err == nil {
		contents[bootstrapFile], err = JSON(contents[bootstrapFile])
	}
	for i, content := range contents {
		if err == nil {
			_, err = f.list[i].Write(content)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}
