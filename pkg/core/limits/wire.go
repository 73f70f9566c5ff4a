package limits

import (
	"strconv"
	"strings"
)

// idBase writes the ID of a domain without "_" and ".", which the stock engine
// uses to join the parts of the names of counters and metrics.
const idBase = 36

// WireID returns the ID of the domain as Envoy and the engine know it.
func (d *Domain) WireID() string { return strconv.FormatInt(d.ID, idBase) }

// Wire returns the domain that Envoy sends and an engine matches: its unique ID
// and the user's name. Dots are replaced: in the stock engine's metrics, a dot
// would truncate the name of the domain and merge different limits.
func (d *Domain) Wire() string { return d.WireID() + "/" + strings.ReplaceAll(d.Domain, ".", "-") }

// ParseWire parses what Wire writes. The name has "-" for each dot. The ID is 0,
// which no global config has, for the filters that state their own limit and for
// text that Wire does not write.
func ParseWire(wire string) (id int64, name string) {
	text, name, found := strings.Cut(wire, "/")
	if n, err := strconv.ParseInt(text, idBase, 64); found && err == nil {
		id = n
	}
	return id, name
}
