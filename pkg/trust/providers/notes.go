package providers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// noteName is the note with what was last known.
	noteName = "identity providers"
	// noteBytes bounds the note; what does not fit is requested after a start.
	noteBytes = 4 << 20
	// lastNote bounds the writing of the note when the program stops.
	lastNote = time.Second
)

// noted is a provider in the note.
type noted struct {
	Provider model.Provider
	Answered time.Time
}

// notes is the state of the watch's note. Watch.mu protects it.
type notes struct {
	// read says that the note was read: before that, it is not written. failed is when that last failed, and reading
	// says that it is being tried again.
	read    bool
	failed  time.Time
	reading bool
	kept    map[model.ProviderSource]noted
	dirty   bool
	writing bool
	written time.Time
}

// recall sets what was known of a provider before the start, if nothing better is known, and reports whether it did.
func (n *notes) recall(p *provider) bool {
	k, ok := n.kept[p.source]
	if delete(n.kept, p.source); !ok || !p.answered.IsZero() {
		return false
	}
	known := k.Provider
	if p.known != nil {
		known.Fault = p.known.Fault
	}
	p.known, p.answered = &known, k.Answered
	return true
}

// retry returns the time until the note must be read again; false if it need not be.
func (n *notes) retry(now time.Time, after time.Duration) (time.Duration, bool) {
	return n.failed.Add(after).Sub(now), !n.read && !n.reading && !n.failed.IsZero()
}

// isLate reports whether the note must be written. One that was not read is not: what it has would be lost.
func (n *notes) isLate() bool { return n.read && n.dirty && !n.writing }

// wait returns the time until the note must be written; false if it need not be.
func (n *notes) wait(now time.Time, least time.Duration) (time.Duration, bool) {
	return n.written.Add(least).Sub(now), n.isLate()
}

// readNote reads the note, once. If that fails, Run tries again.
func (w *Watch) readNote(ctx context.Context) {
	w.mu.Lock()
	tried := w.notes.read || !w.notes.failed.IsZero()
	w.mu.Unlock()
	if !tried {
		w.tryNote(ctx)
	}
}

// readNoteAgain tries to read the note once more.
func (w *Watch) readNoteAgain(ctx context.Context) {
	w.tryNote(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.reading = false
	signal(w.wake)
}

func (w *Watch) tryNote(ctx context.Context) {
	text, err := w.opts.Notes.Note(ctx, noteName)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil && w.notes.failed.IsZero() {
			w.opts.Log.Warn("the last answers of identity providers cannot be read; querying the providers, trying again",
				"err", err)
		}
		w.notes.failed = time.Now()
		return
	}
	var list []noted
	if text != "" {
		err = json.Unmarshal([]byte(text), &list)
	}
	if err != nil {
		w.opts.Log.Warn("the last answers of identity providers are damaged; querying the providers", "err", err)
	}
	w.notes.read, w.notes.kept = true, map[model.ProviderSource]noted{}
	for _, n := range list {
		w.notes.kept[n.Provider.Source] = n
	}
	for _, p := range w.sources {
		if w.notes.recall(p) {
			signal(w.changed)
		}
	}
	w.tell()
}

// writeNote writes the note if it is out of date.
func (w *Watch) writeNote(ctx context.Context) {
	text, ok := w.startNote()
	if !ok {
		return
	}
	err := w.opts.Notes.SetNote(ctx, noteName, text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.writing = false
	if err != nil {
		w.notes.dirty = true
		w.opts.Log.Warn("the answers of identity providers are not stored for the next start, trying again", "err", err)
	}
	signal(w.wake)
}

// startNote returns the text of the note; false if it is current, or being written.
func (w *Watch) startNote() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.notes.isLate() {
		return "", false
	}
	list, size := []noted{}, 0
	for _, p := range w.sources {
		if p.known == nil || p.known.JWKS == "" || size+len(p.known.JWKS) > noteBytes {
			continue
		}
		size += len(p.known.JWKS)
		n := noted{*p.known, p.answered}
		n.Provider.Fault = ""
		list = append(list, n)
	}
	text, err := json.Marshal(list)
	w.notes.dirty, w.notes.written = false, time.Now()
	w.notes.writing = err == nil
	return string(text), err == nil
}
