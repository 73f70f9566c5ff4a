package geoip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

const (
	// maxSize bounds the work of a check. The largest databases of MaxMind have 400 MB.
	maxSize = 1 << 30
	// pollEvery is how often the files are compared with what was seen last.
	pollEvery = time.Second
)

// Files are the operator's files; empty means none.
type Files struct{ Country, ASN string }

// Keeper keeps checked copies.
type Keeper struct {
	log       *slog.Logger
	databases []*database
}

// database is one file and its copy.
type database struct {
	kind   kind
	source string
	// copy is the path of the copy. kept means that it is there, and that Envoy was told.
	copy string
	kept bool
	seen version
}

// version distinguishes files that had one path at different times.
type version struct {
	file fs.FileInfo
	// missing is why there is no file.
	missing string
}

func (v version) equal(o version) bool {
	if v.file == nil || o.file == nil {
		return v.file == nil && o.file == nil && v.missing == o.missing
	}
	return os.SameFile(v.file, o.file) && v.file.Size() == o.file.Size() && v.file.ModTime().Equal(o.file.ModTime())
}

// Open copies those of the files that are good databases into a directory, which must be for this Keeper and its Envoy
// alone. It logs why it does not use a file.
func Open(dir string, files Files, log *slog.Logger) *Keeper {
	k := &Keeper{log: log}
	for _, d := range []*database{
		{kind: country, source: files.Country, copy: filepath.Join(dir, "country.mmdb")},
		{kind: asn, source: files.ASN, copy: filepath.Join(dir, "asn.mmdb")},
	} {
		if d.source == "" {
			continue
		}
		k.databases = append(k.databases, d)
		d.seen = look(d.source)
		build, err := d.take()
		if err != nil {
			log.Error("a database is not used, and the control plane is told that this envoy has none: "+
				"put a good file there and restart", "setting", d.kind.setting, "err", err)
			continue
		}
		d.kept = true
		log.Info("a database is used", "setting", d.kind.setting, "file", d.source, "built", build)
	}
	return k
}

// Copies returns the paths of the copies that Envoy may read; empty means that there is none.
func (k *Keeper) Copies() (out Files) {
	for _, d := range k.databases {
		switch {
		case !d.kept:
		case d.kind.setting == country.setting:
			out.Country = d.copy
		default:
			out.ASN = d.copy
		}
	}
	return out
}

// Run replaces the copies when the operator's files change, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	if len(k.databases) == 0 {
		return
	}
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, d := range k.databases {
			k.follow(d)
		}
	}
}

// follow copies a file that changed, if it is good.
func (k *Keeper) follow(d *database) {
	now := look(d.source)
	if now.equal(d.seen) {
		return
	}
	d.seen = now
	build, err := d.take()
	log := k.log.With("setting", d.kind.setting)
	switch {
	case err == nil && d.kept:
		log.Info("a database was replaced", "file", d.source, "built", build)
	case err == nil:
		log.Warn("a database is good now, but envoy began without it: restart to use it", "file", d.source)
	case d.kept:
		log.Error("the new file is not used, and envoy keeps the last good one", "err", err)
	default:
		log.Error("a database is not used", "err", err)
	}
}

func look(path string) version {
	info, err := os.Stat(path)
	if err != nil {
		return version{missing: err.Error()}
	}
	return version{file: info}
}

// take copies and checks the file, and then gives the copy its name. It returns when the database was built.
func (d *database) take() (build string, err error) {
	next := d.copy + ".new"
	defer func() {
		if err != nil {
			err = fmt.Errorf("--%s %s: %w", d.kind.setting, d.source, err)
			if gone := os.Remove(next); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	if err := copyFile(next, d.source); err != nil {
		return "", err
	}
	if build, err = check(next, d.kind); err != nil {
		return "", err
	}
	return build, os.Rename(next, d.copy)
}

// copyFile copies a file of a bounded size.
func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("is not a file")
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, maxSize+1))
	if n > maxSize {
		err = errors.Join(err, fmt.Errorf("is larger than %d MiB", maxSize>>20))
	}
	return errors.Join(err, out.Close())
}
