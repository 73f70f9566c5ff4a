package document

import (
	"fmt"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// The limits of a document. A tree takes about 200 bytes for each part: a few million
// parts would need more memory than the rest of the program.
const (
	// maxParts bounds the tree of one object in JSON, which is read object by object.
	maxParts = 300_000
	// maxYAMLParts bounds the weight of a document in YAML, which is read as one tree;
	// see weighYAML. It allows about 11 MB of plain configuration, or 17,000 services
	// with five routes each.
	maxYAMLParts = 2_500_000
)

// readJSON reads a document object by object, and stops at the maximum number of errors.
func (b *builder) readJSON(data []byte) error {
	if err := checkJSON(data); err != nil {
		return err
	}
	r := newJSONReader(data, quotedNode)
	if r.peek() != '{' {
		node, err := r.value()
		if err == nil {
			b.document(node)
		}
		return err
	}
	known := knownKeys()
	top := &keys{line: r.lineHere()}
	for r.at++; r.next(); {
		if err := b.readSection(r, known, top); err != nil || b.hasMaxErrors() {
			return err
		}
	}
	b.hasVersion(top)
	return nil
}

// readSection reads one top-level key with its value.
func (b *builder) readSection(r *jsonReader, known []string, top *keys) error {
	text, line := r.key()
	key := strings.ToLower(text)
	ok := b.key(top, key, line, "", known)
	kind := kindOf(key)
	if !ok || kind == "" || r.peek() != '[' {
		r.parts = 0
		node, err := r.value()
		if err == nil && ok {
			b.topValue(entry{key, line, node})
		}
		return err
	}
	r.at++
	for i := 0; r.next(); i++ {
		r.parts = 0
		node, err := r.value()
		if err != nil {
			return err
		}
		if b.object(kind, "", key, i, node); b.hasMaxErrors() {
			return nil
		}
	}
	return nil
}

// hasMaxErrors reports whether the maximum number of errors is reached.
func (b *builder) hasMaxErrors() bool { return len(b.errs) >= maxErrors }

// keys are the keys of one mapping.
type keys struct {
	line int
	seen []string
}

// topValue reads a value at the top level of the document.
func (b *builder) topValue(e entry) {
	switch e.key {
	case "version":
		b.version(e)
	case "revision":
		b.revision(e)
	default:
		b.objects(kindOf(e.key), "", e.key, e.value)
	}
}

func kindOf(key string) model.Kind {
	for _, s := range sections() {
		if s.key == key {
			return s.kind
		}
	}
	return ""
}

// knownKeys returns the keys at the top level of a document.
func knownKeys() []string {
	known := []string{"version", "revision"}
	for _, s := range sections() {
		known = append(known, s.key)
	}
	return known
}

// checkYAMLParts refuses a YAML text that may have too many parts, without parsing it: a
// part needs a character that separates it from the previous one. Texts that contain such
// characters count too.
func checkYAMLParts(data []byte) error {
	weight := 0
	for i, c := range data {
		switch c {
		case ',', ':', '\n':
			weight += 2 // a key and its value
		case '[', '{', '?':
			weight++
		case '-':
			if i+1 == len(data) || strings.IndexByte(" \t\r\n", data[i+1]) >= 0 {
				weight++
			}
		}
	}
	if weight > maxYAMLParts {
		return fmt.Errorf("has more parts than can be read at a time: %d, by its commas, colons, brackets and lines, "+
			"and the limit is %d; "+
			"send it as JSON, or in several documents without prune", weight, maxYAMLParts)
	}
	return nil
}
