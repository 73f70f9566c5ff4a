package xdsauth

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// follower watches files that make one part of the material. It compares their contents, so that it misses no quick
// change.
type follower struct {
	// what names the part, for the log; setting names its settings and files, for an error.
	what, setting string
	names         []string
	// parse puts the part into the material.
	parse func(m *material, contents [][]byte) error

	seen   [][]byte // the contents of the files at the last read
	failed bool     // they were not usable
}

// followers returns them in the order in which they depend on each other.
func (t *TLS) followers() []*follower {
	list := []*follower{{
		what: "certificate", setting: "--xds-tls-cert " + t.opts.Cert + " and --xds-tls-key " + t.opts.Key,
		names: []string{t.opts.Cert, t.opts.Key},
		parse: func(m *material, contents [][]byte) (err error) {
			if m.pair, err = tls.X509KeyPair(contents[0], contents[1]); err != nil {
				return fmt.Errorf("%w: they must be a PEM certificate chain and its key", err)
			}
			return nil
		},
	}}
	if t.opts.ClientCA != "" {
		list = append(list, &follower{
			what: "client authorities", setting: "--xds-tls-client-ca " + t.opts.ClientCA, names: []string{t.opts.ClientCA},
			parse: func(m *material, contents [][]byte) (err error) {
				if m.authorities, err = parseAuthorities(contents[0]); err == nil {
					m.clients = poolOf(m.authorities)
				}
				return err
			},
		})
	}
	if t.opts.ClientCRL != "" {
		list = append(list, &follower{
			what: "client revocation lists", setting: "--xds-tls-client-crl " + t.opts.ClientCRL,
			names: []string{t.opts.ClientCRL},
			parse: func(m *material, contents [][]byte) (err error) {
				m.revoked, err = parseRevocations(contents[0], m.authorities)
				return err
			},
		})
	}
	return list
}

// read reads the files. It returns the material with their contents, if those are new, or were not usable before.
func (f *follower) read(m material, readFile func(string) ([]byte, error)) (next *material, err error) {
	contents := make([][]byte, len(f.names))
	for i, name := range f.names {
		data, e := readFile(name)
		if errors.Is(e, fs.ErrNotExist) || errors.Is(e, fs.ErrPermission) {
			e = fmt.Errorf("%w: the user that runs the program needs to read it", e)
		}
		if e != nil {
			data, err = []byte(e.Error()), errors.Join(err, e)
		}
		contents[i] = data
	}
	if !f.failed && slices.EqualFunc(f.seen, contents, bytes.Equal) {
		return nil, nil //nolint:nilnil // nothing is new
	}
	f.seen = contents
	if err == nil {
		err = f.parse(&m, contents)
	}
	f.failed = err != nil
	return &m, err
}

// follow applies new contents of the files of a part, and reports whether it did. If they are not usable, the material
// in use stays. They are tried again: one part may depend on another.
func (t *TLS) follow(f *follower) (changed bool) {
	seen := f.seen
	next, err := f.read(*t.current(), t.opts.ReadFile)
	switch {
	case err != nil && slices.EqualFunc(seen, f.seen, bytes.Equal): // it was already reported
		return false
	case err != nil:
		t.opts.Log.Warn("new files of the xds port not used, what they held before stays", "what", f.what, "files", f.names,
			"err", err)
		return false
	case next == nil:
		return false
	}
	t.mu.Lock()
	t.now = next
	t.mu.Unlock()
	t.opts.Log.Info("new files of the xds port in use", "what", f.what, "files", f.names)
	return true
}
