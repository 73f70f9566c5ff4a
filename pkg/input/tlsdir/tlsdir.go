package tlsdir

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// defaultEvery is how often the directory is read without a notification.
	defaultEvery = time.Minute
	// defaultSettle is how long a pair must stay unchanged before it counts.
	defaultSettle = 500 * time.Millisecond
	// retry is how soon an unavailable directory or database is tried again.
	retry = 5 * time.Second
)

// Options configure a Dir. Path, Store, Status and Log are required.
type Options struct {
	// Path is the directory.
	Path  string
	Store store.Store
	// Check and Warn are those of the REST API's writes; nil means no checks, and no
	// warnings.
	Check func(store.Reader, store.Changes) error
	Warn  func(store.Reader, store.Changes) ([]string, error)
	// Status receives the conditions.
	Status *status.Registry
	Log    *slog.Logger
	// Every is how often the directory is read without a notification; 0 means a minute.
	Every time.Duration
	// Settle is how long a pair must stay unchanged before it counts; 0 means half a second.
	Settle time.Duration
	// Blind turns off the notifications of the system.
	Blind bool
}

// Dir keeps the secrets of one directory current. Use New.
type Dir struct {
	opts Options
	// changed signals that what is stored may have changed.
	changed chan struct{}

	mu sync.Mutex
	// held are the fingerprints of the certificates that are stored from the directory, by
	// name; empty for a pair that is not stored.
	held map[string]string

	// Only Run uses the others.
	states   map[string]*state
	problems map[model.Key]string
	ignored  map[string]string
	// noted has the notes about problems, with the time when each first appeared.
	noted map[note]time.Time
}

// state is what is known of a pair.
type state struct {
	version version
	// since is when the pair was first seen in this version.
	since time.Time
	// gone is when the files were first missing; zero while they exist.
	gone time.Time
	// compared says that the pair was compared with what is stored, at revision.
	compared bool
	revision int64
	// anothers is the fingerprint of what the directory of another control plane stored.
	anothers string
	// have and wrong are the results of check for the version.
	have  chain
	wrong error
	// yields is since when the pair has yielded to another control plane's; zero if it does
	// not.
	yields time.Time
	// refused is why this version did not replace the secret that had the mark against, and
	// tried is when.
	refused, against string
	tried            time.Time
}

// New checks that the directory exists and can be read.
func New(o Options) (*Dir, error) {
	o.Every, o.Settle = cmp.Or(o.Every, defaultEvery), cmp.Or(o.Settle, defaultSettle)
	if path, err := filepath.Abs(o.Path); err == nil {
		o.Path = path
	}
	if _, err := os.ReadDir(o.Path); err != nil {
		return nil, fmt.Errorf("reading --tls-dir %s: %w: "+
			"it must be a directory that the user that runs the program can read", o.Path, pathCause(err))
	}
	if o.Check == nil {
		o.Check = func(store.Reader, store.Changes) error { return nil }
	}
	if o.Warn == nil {
		o.Warn = func(store.Reader, store.Changes) ([]string, error) { return nil, nil }
	}
	return &Dir{
		opts: o, changed: make(chan struct{}, 1), held: map[string]string{},
		states: map[string]*state{}, problems: map[model.Key]string{}, ignored: map[string]string{},
	}, nil
}

// Warnings returns warnings about secrets in a transaction that the directory will replace,
// and has the directory read soon. It is for the writes of other clients.
func (d *Dir) Warnings(written store.Changes) ([]string, error) {
	var list []string
	known := false
	for c, err := range written(model.KindSecret) {
		if err != nil {
			return nil, err
		}
		held, is := d.heldAs(c.Key.Name())
		known = known || is
		after, _ := c.After.(*model.Secret)
		switch {
		case held == "" || after != nil && after.Fingerprint == held:
		case after == nil:
			list = append(list, fmt.Sprintf("%s comes from the files in %s (--tls-dir), which would create it again; "+
				"remove the files first", c.Key.Path(), d.opts.Path))
		default:
			list = append(list, fmt.Sprintf("%s comes from the files in %s (--tls-dir), which replace what is written here; "+
				"change the files", c.Key.Path(), d.opts.Path))
		}
	}
	if known {
		select {
		case d.changed <- struct{}{}:
		default:
		}
	}
	return list, nil
}

func (d *Dir) heldAs(name string) (fingerprint string, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fingerprint, known = d.held[name]
	return fingerprint, known
}

// look reads the directory and stores what has changed. It returns when to look again, and
// the directories whose changes matter.
func (d *Dir) look(ctx context.Context, now time.Time) (again time.Duration, dirs []string) {
	l, err := find(d.opts.Path)
	if err != nil {
		d.report(map[model.Key]string{d.place(d.opts.Path): fmt.Sprintf(
			"%s cannot be read: %s; the secrets stay as they are", d.opts.Path, pathCause(err))})
		return min(d.opts.Every, retry), []string{d.opts.Path}
	}
	problems, held := map[model.Key]string{}, map[string]string{}
	again = d.opts.Every
	var whole []checked
	for _, f := range l.pairs {
		held[f.name], _ = d.heldAs(f.name)
		key := model.SecretKey(f.name)
		c, wait, err := d.read(f, now)
		switch {
		case wait > 0:
			again = min(again, wait)
			if text, was := d.problems[key]; was {
				add(problems, key, text)
			}
		case err == nil:
			whole = append(whole, c)
		case d.states[f.name] == nil: // a half of a pair that was never complete
			l.note(cmp.Or(f.cert, f.key), false, "is not a pair: %s", err)
		default:
			add(problems, key, err.Error()+"; the secret stays as it is")
		}
	}
	again = min(again, d.addNotes(problems, l.notes, now), d.forget(l.pairs, now))
	d.reportIgnored(l.notes)
	if d.store(ctx, whole, now, problems, held) {
		again = min(again, retry) // the database is away
	}
	d.mu.Lock()
	d.held = held
	d.mu.Unlock()
	if ctx.Err() == nil {
		d.report(problems)
	}
	return again, l.dirs
}

// checked is a pair that can be stored.
type checked struct {
	pair
	have  chain
	state *state
}

// read reads a pair and checks it. wait is how long it must stay unchanged before it counts.
func (d *Dir) read(f files, now time.Time) (c checked, wait time.Duration, err error) {
	p, err := readPair(f)
	s := d.states[f.name]
	if err != nil && (f.cert == "" || f.key == "") && s == nil {
		return checked{}, 0, err
	}
	v := version{} // of an unreadable pair
	if err == nil {
		v = p.version()
	}
	if s == nil {
		s = &state{version: v, since: now}
		d.states[f.name] = s
	}
	s.gone = time.Time{}
	if s.version != v {
		s.version, s.since, s.have, s.wrong, s.refused = v, now, nil, nil, ""
	}
	if wait := d.opts.Settle - now.Sub(s.since); wait > 0 {
		return checked{}, wait, nil
	}
	if err != nil {
		return checked{}, 0, err
	}
	if s.have == nil && s.wrong == nil {
		s.have, s.wrong = p.check()
	}
	return checked{p, s.have, s}, 0, s.wrong
}

// store stores the pairs that differ from what is stored. It adds to the problems and to what
// is held. away says that the database is unavailable.
func (d *Dir) store(
	ctx context.Context, pairs []checked, now time.Time, problems map[model.Key]string, held map[string]string,
) (away bool) {
	type difference struct {
		checked
		against string
	}
	var differ []difference
	err := d.opts.Store.Read(ctx, func(r store.Reader) error {
		revision, err := r.Revision()
		if err != nil {
			return err
		}
		have, err := storedAll(r, pairs)
		if err != nil {
			return err
		}
		for _, c := range pairs {
			old := have[c.name]
			if decide(c.pair, c.have, old, false) == keep {
				c.state.agree(revision)
				held[c.name] = c.have.text()
			} else {
				differ = append(differ, difference{c, mark(old)})
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		d.opts.Log.Warn("certificates of a directory not compared with the database", "dir", d.opts.Path, "err", err)
	}
	if err != nil {
		for key, text := range d.problems { // they are unchanged
			add(problems, key, text)
		}
		return true
	}
	for _, c := range differ {
		s := c.state
		if s.refused == "" || s.against != c.against || now.Sub(s.tried) >= d.opts.Every {
			text, fails := d.storeOne(ctx, c.checked, now)
			s.refused, s.against, s.tried = text, c.against, now
			away = away || fails
		}
		held[c.name] = ""
		if s.refused == "" {
			held[c.name] = c.have.text()
			continue
		}
		if s.yields.IsZero() || now.Sub(s.yields) >= d.opts.Every { // otherwise these files may follow, too
			add(problems, model.SecretKey(c.name), s.refused)
		}
	}
	return away
}

// mark identifies one state of a stored secret.
func mark(s *model.Secret) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprint(s.ID, s.UpdateTS, s.Fingerprint)
}

// storeOne stores a pair. It returns what is wrong, and whether the database is unavailable.
func (d *Dir) storeOne(ctx context.Context, c checked, now time.Time) (wrong string, away bool) {
	res, err := d.sync(ctx, c)
	refused, is := errors.AsType[*model.Error](err)
	switch {
	case ctx.Err() != nil:
		return "the program ends", false
	case err != nil && (!is || refused.Kind == model.Unavailable):
		d.opts.Log.Error("certificate of a directory not stored", "secret", c.name, "cert", c.cert, "err", err)
		return fmt.Sprintf("%s with %s could not be stored: the log says why; it is tried again", c.cert, c.key), true
	case err != nil:
		shown := *refused
		shown.Err = nil // it is for the log
		d.opts.Log.Debug("certificate of a directory refused", "secret", c.name, "cert", c.cert, "err", err)
		return fmt.Sprintf("%s with %s is refused: %s; the secret stays as it is", c.cert, c.key, shown.Error()), false
	}
	if res.decision != yield {
		c.state.yields = time.Time{}
	} else if c.state.yields.IsZero() {
		c.state.yields = now
	}
	switch res.decision {
	case yield:
		return fmt.Sprintf("%s is older than the certificate that another control plane has stored from its --tls-dir, "+
			"which stays: give both the same files", c.cert), false
	case refuse:
		return fmt.Sprintf("the secret contains a value, or a certificate without a key, and %s does not replace either; "+
			"rename the files, or delete the secret", c.cert), false
	case write:
		d.opts.Log.Info("certificate of a directory stored", "secret", c.name, "cert", c.cert, "rev", res.revision,
			"names", c.have[0].DNSNames, "not_after", c.have[0].NotAfter)
		for _, w := range res.warnings {
			d.opts.Log.Warn("certificate of a directory stored with a warning", "secret", c.name, "cert", c.cert, "reason", w)
		}
	}
	return "", false
}

// agree records that the pair is stored.
func (s *state) agree(revision int64) {
	s.compared, s.revision, s.anothers, s.refused, s.yields = true, revision, "", "", time.Time{}
}

// forget forgets pairs whose files have been missing for a moment. It returns when to look
// again.
func (d *Dir) forget(pairs []files, now time.Time) (again time.Duration) {
	there := map[string]bool{}
	for _, f := range pairs {
		there[f.name] = true
	}
	again = d.opts.Every
	for name, s := range d.states {
		if there[name] {
			continue
		}
		if s.gone.IsZero() {
			s.gone = now
		}
		if wait := d.opts.Settle - now.Sub(s.gone); wait > 0 {
			again = min(again, wait)
			continue
		}
		delete(d.states, name)
		if s.compared {
			d.opts.Log.Info("files of a certificate are gone, the secret stays", "secret", name, "dir", d.opts.Path,
				"hint", "detach and delete the secret if it is not needed any more")
		}
	}
	return again
}

// addNotes adds what has been wrong for a moment, which leaves out files that are being moved
// and links that are being swapped. It returns when to look again.
func (d *Dir) addNotes(problems map[model.Key]string, notes []note, now time.Time) (again time.Duration) {
	again = d.opts.Every
	noted := map[note]time.Time{}
	for _, n := range notes {
		if !n.wrong {
			continue
		}
		since, was := d.noted[n]
		if !was {
			since = now
		}
		noted[n] = since
		if wait := d.opts.Settle - now.Sub(since); wait > 0 {
			again = min(again, wait)
			continue
		}
		add(problems, d.place(n.path), n.path+" "+n.text)
	}
	d.noted = noted
	return again
}

// text returns the fingerprint as a secret shows it.
func (c chain) text() string {
	sum := c.fingerprint()
	return "sha256:" + hex.EncodeToString(sum[:])
}
