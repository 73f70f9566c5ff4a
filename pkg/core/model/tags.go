package model

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Tags are words by which a user groups objects: sorted, each once. The zero
// value has none.
type Tags []string

// NewTags returns the words sorted, each once.
func NewTags(words []string) Tags {
	tags := Tags(slices.Compact(slices.Sorted(slices.Values(words))))
	if len(tags) == 0 {
		return nil
	}
	return tags
}

// Has reports whether tag is among them.
func (t Tags) Has(tag string) bool { return slices.Contains(t, tag) }

// MarshalJSON writes an array, never null.
func (t Tags) MarshalJSON() ([]byte, error) {
	if len(t) == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal([]string(t))
}

// UnmarshalJSON reads an array.
func (t *Tags) UnmarshalJSON(b []byte) error {
	var words []string
	if err := json.Unmarshal(b, &words); err != nil {
		return err
	}
	*t = NewTags(words)
	return nil
}

// Value stores the tags as " one two ", in which each can be found between two
// spaces (database/sql).
func (t Tags) Value() (driver.Value, error) {
	if len(t) == 0 {
		return "", nil
	}
	return " " + strings.Join(t, " ") + " ", nil
}

// Scan reads what Value stores (database/sql).
func (t *Tags) Scan(src any) error {
	text, err := scanText(src)
	if err != nil {
		return fmt.Errorf("reading tags: %w", err)
	}
	*t = NewTags(strings.Fields(text))
	return nil
}

// scanText takes a text column in whichever form the driver gives it.
func scanText(src any) (string, error) {
	switch v := src.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	return "", fmt.Errorf("have %T, want text", src)
}

func (v *validator) tags(tags Tags) {
	if len(tags) > 32 {
		v.add("tags", "has %d words; at most 32 are allowed", len(tags))
	}
	for _, tag := range tags {
		bad := strings.ContainsFunc(tag, func(r rune) bool { return !isNameRune(r) && r != ':' && r != '/' })
		if tag == "" || len(tag) > 63 || bad {
			v.add("tags", "%q is not a word of 1 to 63 characters of A-Z a-z 0-9 . _ : / -", tag)
			return
		}
	}
}
