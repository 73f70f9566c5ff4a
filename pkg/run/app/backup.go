package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// Standard is the file name that means standard input or output.
const Standard = "-"

// BackupOptions say where a backup goes. Doing is as in sqlstore.BackupOptions.
type BackupOptions struct {
	File    string
	Replace bool
	Doing   func(what, file string, size int64)
}

// Backup copies the SQLite database of cfg to a file or to stdout, while a server uses
// it or not. Its messages go to stderr.
func Backup(ctx context.Context, cfg config.Config, env Env, o BackupOptions) error {
	dsn, err := databaseURL(cfg)
	if err != nil {
		return err
	}
	if isPostgres(dsn) {
		return pgDumpError(dsn, o.File)
	}
	if err := printDatabase(env, dsn); err != nil {
		return err
	}
	path, err := secretKeyFile(cfg)
	if err != nil {
		return err
	}
	b := sqlstore.BackupOptions{URL: dsn, Replace: o.Replace, Doing: o.Doing}
	keyring, keyErr := seal.Open(path) // the copy can be made without it
	if keyErr == nil {
		b.Sealer = keyring
	}
	if o.File == Standard {
		b.Out = env.Stdout
	} else {
		b.Path = o.File
	}
	made, err := sqlstore.Backup(ctx, b)
	if err != nil {
		return err
	}
	name := o.File
	if o.File == Standard {
		name = "standard output"
	}
	_, err = fmt.Fprintf(env.Stderr, "wrote revision %d (schema %d, %s) to %s\n", made.Revision, made.Schema,
		sizeText(made.Size), name)
	return errors.Join(err, printKey(env.Stderr, path, keyErr, made.KeyOpens))
}

// printKey prints which key a backup needs.
func printKey(w io.Writer, path string, keyErr error, opens bool) error {
	text := "its secrets need the key file " + path + ", which is not in it: keep a copy of that file in another place"
	switch {
	case keyErr != nil:
		text = "its secrets need the key file of the server, which is not in it and cannot be checked: " + keyErr.Error()
	case !opens:
		text = "its secrets need a key file, which is not in it, and " + path +
			" is another one: name the right one with --secret-key-file"
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// RestoreOptions say what is restored, and how. Doing is as in sqlstore.BackupOptions.
type RestoreOptions struct {
	File           string
	Stdin          io.Reader
	CheckOnly      bool
	AcceptUnopened bool
	Doing          func(what, file string, size int64)
}

// Restore replaces the SQLite database of cfg with a backup, while no server uses it.
func Restore(ctx context.Context, cfg config.Config, env Env, o RestoreOptions) error {
	dsn, err := databaseURL(cfg)
	if err != nil {
		return err
	}
	if isPostgres(dsn) {
		return pgRestoreError(dsn, o.File)
	}
	keyring, err := openForRestore(cfg, dsn, o.CheckOnly)
	if err != nil {
		return err
	}
	from, name := o.Stdin, "standard input"
	if o.File != Standard {
		f, err := openBackup(o.File, dsn)
		if err != nil {
			return err
		}
		defer f.Close()
		from, name = f, o.File
	}
	done, err := sqlstore.Restore(ctx, sqlstore.RestoreOptions{
		URL: dsn, From: from, Name: name, Sealer: keyring, CheckOnly: o.CheckOnly, AcceptUnopened: o.AcceptUnopened,
		As: "gatehouse restore", Now: time.Now(), Doing: o.Doing, Log: env.Log,
	})
	if err != nil {
		return err
	}
	return printRestored(env.Stdout, done, name, o.CheckOnly)
}

// openForRestore opens the key. It refuses early what Restore would only refuse after
// it has read the backup.
func openForRestore(cfg config.Config, dsn string, checkOnly bool) (*seal.Keyring, error) {
	path, err := secretKeyFile(cfg)
	if err != nil {
		return nil, err
	}
	keyring, err := seal.Open(path)
	if err != nil {
		return nil, err
	}
	if cfg.DatabaseURL == "" {
		if err := makeDataDir(cfg); err != nil {
			return nil, err
		}
	}
	holder, err := sqlstore.ClaimHolder(dsn)
	if err != nil || holder == "" || checkOnly {
		return keyring, err
	}
	return nil, &model.Error{
		Kind: model.Conflict, Message: "the database " + databasePath(dsn) + " is used by " + holder +
			", and a restore replaces it",
		Hint: "stop that process, run this again, then start it again; " +
			"Envoys that it did not start go on with what they have meanwhile",
	}
}

func databasePath(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return ""
	}
	return u.Path
}

// openBackup opens a file that is not the database itself.
func openBackup(file, dsn string) (*os.File, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the backup: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: name a file that gatehouse backup has written, or - for standard input",
			file)
	}
	if database, statErr := os.Stat(databasePath(dsn)); err == nil && statErr == nil && os.SameFile(info, database) {
		err = fmt.Errorf("%s is the database that would be replaced: name a file that gatehouse backup has written", file)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func printRestored(w io.Writer, done sqlstore.Restored, name string, checkOnly bool) error {
	var b strings.Builder
	did := "restored"
	if checkOnly {
		did = "could restore"
	}
	fmt.Fprintf(&b, "%s revision %d of %s (schema %d, %s) as %s\n", did, done.Revision, name, done.Schema,
		sizeText(done.Size), done.Path)
	fmt.Fprintf(&b, "the key opens %s\n", countText(done.Secrets, "sealed text"))
	for _, path := range done.Unopened {
		fmt.Fprintf(&b, "the key does not open the secrets of %s: set them again\n", path)
	}
	if done.Kept != "" {
		fmt.Fprintf(&b, "the database before is %s\n", done.Kept)
	}
	var tokens []string
	for _, t := range done.Tokens {
		tokens = append(tokens, "/token/"+t.Name)
	}
	for _, t := range done.ProxyTokens {
		tokens = append(tokens, t.Path())
	}
	if len(tokens) > 0 {
		fmt.Fprintf(&b, "these tokens are valid, also if they were revoked after the backup: %s\n",
			strings.Join(tokens, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func sizeText(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

func isPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func pgDumpError(dsn, file string) error {
	to := "--file=" + quoteWord(file) + " "
	if file == Standard {
		to = ""
	}
	return &model.Error{
		Kind: model.Invalid, Message: "gatehouse backup is for SQLite; PostgreSQL has a program of its own",
		Hint: "run: pg_dump --format=custom --no-owner " + to + quoteWord(withoutPassword(dsn)),
	}
}

func pgRestoreError(dsn, file string) error {
	if file == Standard {
		file = ""
	}
	return &model.Error{
		Kind: model.Invalid, Message: "gatehouse restore is for SQLite; PostgreSQL has a program of its own",
		Hint: "run: pg_restore --clean --if-exists --no-owner --single-transaction --dbname=" +
			quoteWord(withoutPassword(dsn)) + " " + quoteWord(file),
	}
}

// withoutPassword returns a database URL that others may see. The programs of
// PostgreSQL then ask for the password, or read it from PGPASSWORD.
func withoutPassword(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return config.RedactURL(dsn)
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	q.Del("password")
	u.RawQuery = q.Encode()
	return u.String()
}

// quoteWord quotes a text as one word for a shell.
func quoteWord(s string) string {
	if s == "" || regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`).MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
