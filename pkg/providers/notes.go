package providers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
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
	read    bool
	kept    map[model.ProviderSource]noted
	dirty   bool
	writing bool
	written time.Time
}

// recall sets what was known of a new provider before the start.
func (n *notes) recall(p *provider) {
	if k, ok := n.kept[p.source]; ok {
		p.known, p.answered = &k.Provider, k.Answered
		delete(n.kept, p.source)
	}
}

// wait returns the time until the note must be written; false if it need not be.
func (n *notes) wait(now time.Time, least time.Duration) (time.Duration, bool) {
	return n.written.Add(least).Sub(now), n.dirty && !n.writing
}

// readNote reads the note, once.
func (w *Watch) readNote(ctx context.Context) {
	w.mu.Lock()
	read := w.notes.read
	w.mu.Unlock()
	if read {
		return
	}
	text, err := w.opts.Notes.Note(ctx, noteName)
	var list []noted
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &list)
	}
	if err != nil {
		w.opts.Log.Warn("what identity providers said last is not known; they are asked", "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes.read, w.notes.kept = true, map[model.ProviderSource]noted{}
	for _, n := range list {
		w.notes.kept[n.Provider.Source] = n
	}
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
		w.opts.Log.Warn("what identity providers say is not noted for the next start; it is tried again", "err", err)
	}
	signal(w.wake)
}

// startNote returns the text of the note; false if it is current, or being written.
func (w *Watch) startNote() (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.notes.dirty || w.notes.writing {
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
