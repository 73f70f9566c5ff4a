package model

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// timeLayout is ISO 8601 with a numeric UTC offset and microseconds
// (specification, "Dump of a service").
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// Time is a moment with the precision of a microsecond, in UTC. The zero value
// is the zero time.
type Time struct{ time.Time }

// At makes a Time of t, cut to the microsecond that every database keeps.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// String is the time as the API shows it.
func (t Time) String() string { return t.UTC().Format(timeLayout) }

// MarshalJSON writes the time as the API shows it.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(b []byte) error {
	v, err := time.Parse(`"`+timeLayout+`"`, string(b))
	if err != nil {
		return fmt.Errorf("reading timestamp: %w", err)
	}
	*t = At(v)
	return nil
}

// Value stores the time in a database (database/sql).
func (t Time) Value() (driver.Value, error) { return t.UTC(), nil }

// Scan reads the time from a database (database/sql): a time, or the text that
// SQLite holds.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case time.Time:
		*t = At(v)
		return nil
	case string:
		at, err := parseStored(v)
		*t = At(at)
		return err
	}
	return fmt.Errorf("reading timestamp: have %T, want a time", src)
}

// parseStored reads a time as SQLite holds it: in the form that this program
// writes, which is RFC 3339 with a space in the middle, or in another one that
// was written by hand.
func parseStored(text string) (at time.Time, err error) {
	var b [len("2006-01-02T15:04:05.999999999-07:00")]byte
	if n := copy(b[:], text); n == len(text) && n > len("2006-01-02") {
		b[len("2006-01-02")] = 'T'
		if at.UnmarshalText(b[:n]) == nil { // some ten times faster than time.Parse
			return at, nil
		}
	}
	for _, layout := range []string{
		"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
		"2006-01-02 15:04:05 -0700 MST",
	} {
		if at, err = time.Parse(layout, strings.TrimSuffix(text, "Z")); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("reading timestamp: %q is not a time such as 2006-01-02 15:04:05", text)
}
