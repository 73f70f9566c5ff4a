package sqlstore

import "time"

// SetStepTimeout is for a store that nobody uses yet.
func SetStepTimeout(s *Store, d time.Duration) { s.stepTimeout = d }

// SetMemory is likewise.
func SetMemory(s *Store, generation, kept int) { s.generationSize, s.keptBytes = generation, kept }

// Pragma reads a setting of the connection that writes.
func Pragma(s *Store, name string) (value string, err error) {
	err = s.pools[0].QueryRow("PRAGMA " + name).Scan(&value)
	return value, err
}

// PrefixEnd is prefixEnd.
var PrefixEnd = prefixEnd

// SetLoaders is likewise.
func SetLoaders(s *Store, n int) { s.loaders = n }
