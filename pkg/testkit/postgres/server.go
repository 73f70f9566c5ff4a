package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// PasswordUser is the only role that must send its password; a test creates it with a
// password. Every other role is trusted.
const PasswordUser = "with_password"

// Server is a running PostgreSQL. Its methods are for one goroutine.
type Server struct {
	dir, bin string
	uid      int
	port     int
	cmd      *exec.Cmd
	// exited is closed when cmd has ended.
	exited chan struct{}
}

// Start makes a database cluster in dir, an empty directory, and runs a server
// on a free port of 127.0.0.1 until Stop. ctx bounds the start.
func Start(ctx context.Context, dir string) (*Server, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin}
	if os.Getuid() == 0 {
		s.uid = nobody
		if err := share(dir); err != nil {
			return nil, fmt.Errorf("opening %s to the server's user: %w", dir, err)
		}
		if s.bin, err = reachableBin(bin, dir); err != nil {
			return nil, err
		}
	}
	if err := s.initialize(ctx); err != nil {
		return nil, fmt.Errorf("initializing PostgreSQL: %w", err)
	}
	if s.port, err = testkit.FreePort(); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.dir, "postgres.log") }

func (s *Server) initialize(ctx context.Context) error {
	if err := os.Mkdir(s.data(), 0o700); err != nil {
		return err
	}
	if s.uid != 0 {
		if err := os.Chown(s.data(), s.uid, s.uid); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	s.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running initdb: %w: %s", err, out)
	}
	hba := "host all " + PasswordUser + " 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
	return os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(hba), 0o600)
}

func (s *Server) prepare(cmd *exec.Cmd) {
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.dir)
	cmd.SysProcAttr = sysProcAttr(s.uid)
}

// start runs the server and waits until it answers.
func (s *Server) start(ctx context.Context) error {
	log, err := os.Create(s.logFile())
	if err != nil {
		return fmt.Errorf("starting PostgreSQL: %w", err)
	}
	defer log.Close()
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port)}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "full_page_writes=off",
		"shared_buffers=32MB", "max_connections=200",
	} {
		args = append(args, "-c", setting)
	}
	// Not bound to ctx, which is for the start only.
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), args...)
	s.prepare(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting PostgreSQL: %w", err)
	}
	exited := make(chan struct{})
	s.cmd, s.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	if err := s.waitReady(ctx); err != nil {
		return errors.Join(fmt.Errorf("starting PostgreSQL: %w: %s", err, tail(s.logFile())), s.Stop())
	}
	return nil
}

func (s *Server) waitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.exec(ctx, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("it ended")
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// exec runs one statement in the database postgres.
func (s *Server) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// URL returns the address of a database, for the superuser postgres.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// CreateDatabase makes an empty database.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	return s.CopyDatabase(ctx, "template1", name)
}

// CopyDatabase makes a database with the content of another that nobody is connected to.
func (s *Server) CopyDatabase(ctx context.Context, from, name string) error {
	if err := s.exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE "+pgx.Identifier{from}.Sanitize()); err != nil {
		return fmt.Errorf("creating database %q: %w", name, err)
	}
	return nil
}

// Stop stops the server and returns when it has exited; connections are closed. The
// data stays. It does nothing if the server is not running.
func (s *Server) Stop() error {
	if s.cmd == nil {
		return nil
	}
	// "Fast shutdown" of the manual's section "Shutting Down the Server".
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGQUIT, os.Kill} {
		if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stopping PostgreSQL: %w", err)
		}
		select {
		case <-s.exited:
			s.cmd = nil
			return nil
		case <-time.After(10 * time.Second):
		}
	}
	return errors.New("stopping PostgreSQL: it does not end")
}

// Crash stops the server as a crash would, and starts it on the same port: tables
// without a write-ahead log are then empty.
func (s *Server) Crash(ctx context.Context) error {
	// "Immediate shutdown", which needs recovery.
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return fmt.Errorf("crashing PostgreSQL: %w", err)
	}
	select {
	case <-s.exited:
		s.cmd = nil
		return s.start(ctx)
	case <-ctx.Done():
		return fmt.Errorf("crashing PostgreSQL: %w", ctx.Err())
	}
}

// Restart stops the server, if it runs, and starts it on the same port.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	return s.start(ctx)
}
