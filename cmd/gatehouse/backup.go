package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

func newBackup() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   config.Backup + " FILE",
		Short: "Copy the SQLite database to a file, while a server may use it",
		Long: `Copies the SQLite database to FILE, or to standard output if FILE is -. A server
may use the database meanwhile and waits for nothing. The copy is the state at one
moment. It is complete and checked before it has its name.

The key that seals secrets is not in the copy: keep a copy of the key file in
another place. For PostgreSQL it prints the call of pg_dump.`,
		Example: `  gatehouse backup --data-dir /var/lib/gatehouse /backup/gatehouse.db
  docker exec gatehouse gatehouse backup - > gatehouse-backup.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == app.Standard && onTerminal(cmd.OutOrStdout()) {
				return errors.New("a backup is not for a terminal: redirect standard output, or name a file")
			}
			return onDatabase(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
				line := newSizeLine(env.Stderr)
				env.Stderr = line
				err := app.Backup(ctx, cfg, env, app.BackupOptions{File: args[0], Replace: force, Doing: line.doing})
				line.end()
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it exists")
	addDatabaseFlags(cmd)
	return cmd
}

func newRestore() *cobra.Command {
	var o app.RestoreOptions
	cmd := &cobra.Command{
		Use:   config.Restore + " FILE",
		Short: "Replace the SQLite database of a stopped server with a backup",
		Long: `Replaces the SQLite database with FILE, or with standard input if FILE is -. Stop
the server first. The backup is read in full, brought to the schema of this version, and its
secrets are opened with the key file before anything is replaced. The old
database stays next to the new one, under another name.

For PostgreSQL it prints the call of pg_restore.`,
		Example: `  gatehouse restore --data-dir /var/lib/gatehouse /backup/gatehouse.db
  gatehouse restore --check /backup/gatehouse.db   # replaces nothing`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onDatabase(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
				line := newSizeLine(env.Stderr)
				o.File, o.Stdin, o.Doing = args[0], cmd.InOrStdin(), line.doing
				err := app.Restore(ctx, cfg, env, o)
				line.end()
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&o.CheckOnly, "check", false, "only check that FILE can be restored, also while a server runs")
	cmd.Flags().BoolVar(&o.AcceptUnopened, "accept-unopened", false, "restore although the key does not open the secrets of some objects")
	addDatabaseFlags(cmd)
	return cmd
}

// sizeLine is a terminal with a line about a file that grows, after a second. On
// anything else it shows none.
type sizeLine struct {
	out  io.Writer
	show bool
	mu   sync.Mutex
	stop func()
}

func newSizeLine(out io.Writer) *sizeLine { return &sizeLine{out: out, show: onTerminal(out)} }

// Write ends the line, for other words.
func (l *sizeLine) Write(p []byte) (int, error) {
	l.end()
	return l.out.Write(p)
}

func (l *sizeLine) doing(what, file string, size int64) {
	l.end()
	if !l.show {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop = progressOf(l.out, func() string { return what + sizeOf(file, size) }, time.Second)
}

func (l *sizeLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// sizeOf says how much of a file is there; size 0 means that nobody knows how large
// it will be.
func sizeOf(file string, size int64) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	text := fmt.Sprintf(": %d", info.Size()>>20)
	if size > 0 {
		text += fmt.Sprintf(" of %d", size>>20)
	}
	return text + " MiB"
}
