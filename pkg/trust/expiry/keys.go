package expiry

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// keySoon is how long before its end an API key has the condition model.KeyExpires.
const keySoon = 7 * 24 * time.Hour

// keys are the API keys that end at some time.
type keys map[model.Key]*ending

type ending struct {
	key *model.APIKey
	at  time.Time
	// told says that the reader has the key as one that has ended.
	told bool
}

func (e *ending) hasEnded(now time.Time) bool { return !now.Before(e.at) }

// object returns the key as it is at a time.
func (e *ending) object(now time.Time) model.Object {
	if e.told = e.hasEnded(now); e.told {
		return e.key.Expired()
	}
	return e.key
}

// apply marks the keys of a change that have ended, and adds those that have ended since the last one. It reports whether
// a key has come, changed or gone.
func (k keys) apply(change model.Change, now time.Time) (out model.Change, changed bool) {
	if change.Full {
		changed = len(k) > 0
		clear(k)
	}
	entries, copied := change.Entries, false
	for i, e := range change.Entries {
		if e.Key.Kind != model.KindAPIKey {
			continue
		}
		changed = changed || k[e.Key] != nil
		delete(k, e.Key)
		key, there := e.Object.(*model.APIKey)
		if !there {
			continue
		}
		at, err := key.End()
		if err != nil || at.IsZero() { // a malformed key reaches no Envoy
			continue
		}
		changed = true
		k[e.Key] = &ending{key: key, at: at}
		if object := k[e.Key].object(now); object != e.Object {
			if !copied {
				entries, copied = slices.Clone(entries), true // others have the list, too
			}
			entries[i].Object = object
		}
	}
	var later []model.Entry
	for _, key := range k.sorted() {
		if e := k[key]; e.told != e.hasEnded(now) {
			later = append(later, model.Entry{Key: key, Object: e.object(now)})
		}
	}
	change.Entries = slices.Concat(later, entries)
	return change, changed
}

// differ reports whether the reader has a key in another state than at a time.
func (k keys) differ(now time.Time) bool {
	for _, e := range k {
		if e.told != e.hasEnded(now) {
			return true
		}
	}
	return false
}

// conditions returns the conditions at a time, and when they next change by themselves; the zero time means never.
func (k keys) conditions(now time.Time) (list []model.Condition, until time.Time) {
	for _, key := range k.sorted() {
		e := k[key]
		at := e.at.UTC().Format("2006-01-02 15:04:05 UTC")
		switch {
		case e.hasEnded(now):
			list = append(list, model.Condition{Key: key, Code: model.KeyExpired, Message: "the key ended at " + at +
				": it is refused; delete it, or set another Key_expires"})
		case !now.Before(e.at.Add(-keySoon)):
			list = append(list, model.Condition{Key: key, Code: model.KeyExpires, Message: "the key ends at " + at +
				": its client needs another one until then"})
			until = earlier(until, e.at)
		default:
			until = earlier(until, e.at.Add(-keySoon))
		}
	}
	return list, until
}

func (k keys) sorted() []model.Key {
	return slices.SortedFunc(maps.Keys(k), func(a, b model.Key) int { return strings.Compare(a.Text(), b.Text()) })
}

// earlier returns the earlier of two times, of which the zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
