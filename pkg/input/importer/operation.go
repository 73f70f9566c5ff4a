package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// operation is one method on one path of the document.
type operation struct {
	method string
	// path is the path in the document, template the same with the server's base path.
	path     string
	template template
	// methods are the methods that the route matches.
	methods []string
	// name is the name of the route.
	name string
	id   string
	line int
	// padding makes the expression of a path longer than those of less exact paths,
	// because the gateway uses the longest that matches.
	padding int
	// below makes the path a prefix: the route matches everything below it.
	below bool
}

func (o *operation) String() string { return o.method + " " + o.path }

// internal is the extension that many tools use to mark internal operations.
const internal = "x-internal"

// operations lists what the document describes, sorted by path and method, and what of
// it is internal. With preflight there is one more for each base path: it lets browsers
// send preflight requests (OPTIONS).
func operations(doc *openapi3.T, preflight bool) (list []*operation, hidden []string, problems []Problem) {
	bases := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		item := doc.Paths.Value(path)
		if item == nil {
			continue
		}
		described := item.Operations()
		for _, method := range slices.Sorted(maps.Keys(described)) {
			op := described[method]
			o := &operation{
				method: method, path: path, methods: []string{method}, id: op.OperationID,
				line: cmp.Or(operationLine(op), pathLine(item)),
			}
			if op.Extensions[internal] == true || item.Extensions[internal] == true {
				hidden = append(hidden, o.String())
				continue
			}
			// A server that answers GET answers HEAD (RFC 9110 section 9.3.2), and few
			// documents mention HEAD.
			if method == http.MethodGet && described[http.MethodHead] == nil {
				o.methods = append(o.methods, http.MethodHead)
			}
			servers := doc.Servers
			if len(item.Servers) > 0 {
				servers = item.Servers
			}
			if op.Servers != nil && len(*op.Servers) > 0 {
				servers = *op.Servers
			}
			base, _, err := basePath(servers)
			if err == nil {
				o.template, err = parseTemplate(base, path)
			}
			if err != nil {
				problems = append(problems, Problem{o.line, o.String(), err.Error()})
				continue
			}
			bases[base] = true
			list = append(list, o)
		}
	}
	list, twice := duplicates(list)
	problems = append(problems, twice...)
	if preflight {
		list = append(list, preflights(slices.Sorted(maps.Keys(bases)))...)
	}
	nameAll(list)
	order(list)
	return list, hidden, problems
}

// duplicates removes operations that match the same requests as an earlier one, and
// returns them as problems.
func duplicates(list []*operation) (rest []*operation, problems []Problem) {
	first := map[string]*operation{}
	for _, o := range list {
		key := o.method + " " + o.template.literal()
		if other, twice := first[key]; twice {
			problems = append(problems, Problem{o.line, o.String(), fmt.Sprintf("takes the same requests as %s", other)})
			continue
		}
		first[key] = o
		rest = append(rest, o)
	}
	return rest, problems
}

// preflightID is the name of the route for OPTIONS.
const preflightID = "preflight"

// preflights match OPTIONS for everything below base paths, unless the document has an
// operation for it. The upstream knows which paths exist: it must answer for those that
// share a route here.
func preflights(bases []string) (list []*operation) {
	for _, base := range bases {
		t, err := parseTemplate(base, "/")
		if err != nil {
			continue // its operations have the same problem
		}
		list = append(list, &operation{
			method: http.MethodOptions, methods: []string{http.MethodOptions}, path: base + "/", template: t, id: preflightID,
			below: true,
		})
	}
	return list
}

// nameAll sets the name of each operation's route: the operationId, or one made from
// method and path. Names that were cut, or would be the same, end in a hash of method
// and path, so that they do not depend on the order.
func nameAll(list []*operation) {
	taken, ids := map[string]int{}, map[string]int{}
	for _, o := range list {
		o.name = o.id
		ids[o.id]++
		if o.id == "" {
			path := strings.NewReplacer("/", ".", "{", "_", "}", "_").Replace(strings.TrimPrefix(o.path, "/"))
			o.name = strings.ToLower(o.method) + "." + path
		}
		o.name = legal(o.name)
		taken[o.name]++
	}
	for _, o := range list {
		if len(o.name) > maxName || taken[o.name] > 1 && (o.name != o.id || ids[o.id] > 1) || o.name == "." ||
			o.name == ".." {
			sum := sha256.Sum256([]byte(o.String()))
			o.name = o.name[:min(len(o.name), maxName-9)] + "-" + hex.EncodeToString(sum[:4])
		}
	}
}

// maxName is the length of the longest name (rest-api.md, "Names").
const maxName = 253

// legal replaces each character that names cannot have with a hyphen.
func legal(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, s)
}

// emptyGroup matches the empty text and makes an expression longer.
const emptyGroup = "(?:)"

// order pads the paths with parameters, so that of two that match, the one with more
// literal segments is longer: /users/me/{x} comes before /users/{id}/{x}.
func order(list []*operation) {
	var open []*operation
	for _, o := range list {
		if o.template.parameters() > 0 {
			open = append(open, o)
		}
	}
	slices.SortStableFunc(open, func(a, b *operation) int {
		return cmp.Compare(b.template.parameters(), a.template.parameters())
	})
	shorter := map[int][]*operation{} // by number of segments
	for _, o := range open {
		n := len(o.template.segments)
		for _, other := range shorter[n] {
			if other.template.parameters() == o.template.parameters() || !o.template.overlaps(other.template) {
				continue
			}
			for len(o.prefix()) <= len(other.prefix()) {
				o.padding++
			}
		}
		shorter[n] = append(shorter[n], o)
	}
}

// prefix returns the Route_prefix.
func (o *operation) prefix() string {
	if o.template.parameters() == 0 {
		return o.template.literal()
	}
	return o.template.regex() + strings.Repeat(emptyGroup, o.padding)
}
