package tlsdir

import (
	"context"
	"errors"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Actor is the actor in the change log for writes from a directory.
const Actor = "tls-dir"

// decision is what to do with a pair.
type decision int

const (
	// keep: the stored pair is the same.
	keep decision = iota
	// write: store the pair of the files.
	write
	// yield: another control plane has stored a newer certificate from its directory.
	yield
	// refuse: something else is stored under the name.
	refuse
)

// decide compares a pair with what is stored under its name, nil for nothing. another
// says that the directory of another control plane wrote last.
func decide(p pair, have chain, stored *model.Secret, another bool) decision {
	switch {
	case stored == nil:
		return write
	case stored.Value != "" || stored.Cert != "" && stored.PrivateKey == "":
		return refuse // a text or an authority is not a pair, and something may depend on it
	case stored.Cert == "":
		return write
	case stored.Cert == string(p.certPEM):
		return keep // so is the key: it belongs to the certificate
	}
	was, err := parseChain([]byte(stored.Cert))
	switch {
	case err != nil:
		return write
	case have.equal(was): // in another form, for example with a comment
		return keep
	case another && !have.issued().After(was.issued()):
		return yield
	}
	return write
}

func origin(name string) store.Origin {
	return store.Origin{Actor: Actor, Request: "PUT " + model.SecretKey(name).Path()}
}

// stored returns the secret with a name, or nil.
func stored(r store.Reader, name string) (*model.Secret, error) {
	s, err := store.Get[*model.Secret](r, model.SecretKey(name))
	if model.IsKind(err, model.NotFound) {
		return nil, nil //nolint:nilnil // nothing is stored
	}
	return s, err
}

// storedAll returns the secrets of pairs, by name.
func storedAll(r store.Reader, pairs []checked) (map[string]*model.Secret, error) {
	have := map[string]*model.Secret{}
	for page := range slices.Chunk(pairs, pairsPage) {
		names := make([]string, len(page))
		for i, c := range page {
			names[i] = c.name
		}
		list, err := store.List[*model.Secret](r, store.Query{Kind: model.KindSecret, Names: names})
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			have[s.Name] = s
		}
	}
	return have, nil
}

// pairsPage is how many secrets are read together.
const pairsPage = 500

// revisionsPage is how many revisions are read together.
const revisionsPage = 200

// wroteSince reports whether a directory has written a secret after a revision.
func wroteSince(r store.Reader, name string, after int64) (bool, error) {
	want := origin(name)
	for before := int64(0); ; {
		list, err := r.Revisions(before, revisionsPage)
		if err != nil {
			return false, err
		}
		for _, rev := range list {
			if rev.Revision <= after {
				return false, nil
			}
			if rev.Actor == want.Actor && rev.Request == want.Request {
				return true, nil
			}
			before = rev.Revision
		}
		if len(list) < revisionsPage {
			return false, nil
		}
	}
}

// result is what became of a pair.
type result struct {
	decision decision
	warnings []string
	revision int64
}

var errNoChange = errors.New("nothing is to be changed")

// sync stores a pair unless it is stored already or must not be, and records in its
// state what is stored now.
func (d *Dir) sync(ctx context.Context, c checked) (result, error) {
	var res result
	var seen int64
	var old *model.Secret
	revision, err := d.opts.Store.Write(ctx, origin(c.name), func(w store.Writer) (err error) {
		if seen, err = w.Revision(); err != nil {
			return err
		}
		if old, err = stored(w, c.name); err != nil {
			return err
		}
		another, err := c.state.isAnothers(w, c.name, old)
		if err != nil {
			return err
		}
		if res.decision = decide(c.pair, c.have, old, another); res.decision != write {
			return errNoChange
		}
		return d.write(w, c.pair, old, &res)
	})
	switch {
	case errors.Is(err, errNoChange):
		if res.decision == keep {
			c.state.agree(seen)
		} else {
			c.state.compared, c.state.revision, c.state.anothers = true, seen,
				map[bool]string{true: fingerprint(old)}[res.decision == yield]
		}
		return res, nil
	case err == nil:
		res.revision = revision
		c.state.agree(revision)
	}
	return res, err
}

// write stores a pair as a write of the API would. old is what it replaces, or nil.
func (d *Dir) write(w store.Writer, p pair, old *model.Secret, res *result) error {
	obj := &model.Secret{Name: p.name}
	if old != nil {
		obj = new(*old)
	}
	obj.Cert, obj.PrivateKey = string(p.certPEM), string(p.keyPEM)
	if bad := obj.Validate(); len(bad) > 0 {
		return &model.Error{
			Kind: model.Invalid, Path: obj.Key().Path(), Message: "the secret would not be valid", Fields: bad,
		}
	}
	if _, err := store.Put(w, obj); err != nil {
		return err
	}
	if err := d.opts.Check(w, w.Written()); err != nil {
		return err
	}
	var err error
	res.warnings, err = d.opts.Warn(w, w.Written())
	return err
}

func fingerprint(s *model.Secret) string {
	if s == nil {
		return ""
	}
	return s.Fingerprint
}

// isAnothers reports whether the directory of another control plane last wrote what is
// stored.
func (s *state) isAnothers(r store.Reader, name string, old *model.Secret) (bool, error) {
	if old == nil || !s.compared {
		return false, nil
	}
	if s.anothers != "" && old.Fingerprint == s.anothers {
		return true, nil
	}
	return wroteSince(r, name, s.revision)
}
