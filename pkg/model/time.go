package model

import (
	"database/sql/driver"
	"fmt"
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

// Scan reads the time from a database (database/sql).
func (t *Time) Scan(src any) error {
	v, ok := src.(time.Time)
	if !ok {
		return fmt.Errorf("reading timestamp: have %T, want a time", src)
	}
	*t = At(v)
	return nil
}
