package limits

import (
	"strconv"
	"strings"
)

// idBase writes the id of a domain without "_" and ".", which join the parts of
// a counter's and of a metric's name in the stock engine.
const idBase = 36

// WireID is the id of the domain as Envoy and the engine know it.
func (d *Domain) WireID() string { return strconv.FormatInt(d.ID, idBase) }

// Wire is the domain that Envoy sends and an engine matches: its id, which no
// other has, and the user's name. A dot would cut the name of the domain in the
// stock engine's metrics, and join limits there that are not one.
func (d *Domain) Wire() string { return d.WireID() + "/" + strings.ReplaceAll(d.Domain, ".", "-") }

// ParseWire reads what Wire writes. The name has "-" for each dot. The id is 0,
// which no global config has, for the filters that state their own limit and for
// what Wire does not write.
func ParseWire(wire string) (id int64, name string) {
	text, name, found := strings.Cut(wire, "/")
	if n, err := strconv.ParseInt(text, idBase, 64); found && err == nil {
		id = n
	}
	return id, name
}
