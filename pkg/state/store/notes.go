package store

import "context"

// Notes keeps what the program remembers from one start to the next. It is not part of
// the configuration: it has no revision, and a rollback does not change it.
type Notes interface {
	// Note returns the text under a name; "" if there is none.
	Note(ctx context.Context, name string) (string, error)
	// SetNote stores a text under a name and replaces the one before.
	SetNote(ctx context.Context, name, text string) error
}
