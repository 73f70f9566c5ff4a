package rest

import (
	"testing"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// FuzzCursor reads any text as a cursor. What it takes is one that this program
// has written for the same list.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{
		writeCursor(model.KindUpstream, 1), writeCursor(model.KindRoute, 1<<63-1), writeCursor(model.KindUpstream, -1),
		"", "djEgdXBzdHJlYW0gMDE", "djEgdXBzdHJlYW0gKzE", "djEgdXBzdHJlYW0gMQ==", "djEgdXBzdHJlYW0gMR", "djIgdXBzdHJlYW0gMQ", "1", "\x00", "-_-_",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		taken := 0
		for _, kind := range model.Kinds() {
			id, err := readCursor(kind, cursor)
			if err != nil {
				continue
			}
			taken++
			if id < 1 {
				t.Fatalf("took the ID %d, which nothing has", id)
			}
			if again := writeCursor(kind, id); again != cursor {
				t.Fatalf("took %q for %q", cursor, again)
			}
		}
		if taken > 1 {
			t.Fatalf("%q is a cursor of %d lists", cursor, taken)
		}
	})
}
