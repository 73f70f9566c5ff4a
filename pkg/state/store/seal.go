package store

import "context"

// Resealer is a store whose secrets can be sealed again.
type Resealer interface {
	// Reseal seals every sealed text again with the key that the Sealer uses now,
	// including those of the change log: all of them or none. It makes no revision,
	// because the meaning stays. A text that no key opens is a Conflict error. Writers
	// wait for it.
	Reseal(ctx context.Context) (Resealed, error)
}

// Resealed counts the texts that Reseal has changed.
type Resealed struct {
	// Current counts texts of the configuration, Logged texts of the change log.
	Current, Logged int
}
