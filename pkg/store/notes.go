package store

import "context"

// Notes keeps what the program remembers from one start to the next. It is no
// part of the configuration: it has no revision, and a rollback leaves it alone.
type Notes interface {
	// Note returns the text under a name; "" when there is none.
	Note(ctx context.Context, name string) (string, error)
	// SetNote keeps a text under a name, in place of the one before.
	SetNote(ctx context.Context, name, text string) error
}
