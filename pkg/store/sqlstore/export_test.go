package sqlstore

import "time"

// SetStepTimeout is for a store that nobody uses yet.
func SetStepTimeout(s *Store, d time.Duration) { s.stepTimeout = d }

// SetGenerationSize is likewise.
func SetGenerationSize(s *Store, n int) { s.generationSize = n }

// Pragma reads a setting of the connection that writes.
func Pragma(s *Store, name string) (value string, err error) {
	err = s.pools[0].QueryRow("PRAGMA " + name).Scan(&value)
	return value, err
}

// PrefixEnd is prefixEnd.
var PrefixEnd = prefixEnd
