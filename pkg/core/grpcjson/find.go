package grpcjson

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Refusal is the answer to a request that is not a call.
type Refusal struct {
	// Status is 404 for a path that matches no rule, and 400 for a query parameter that is not a field.
	Status int
	// Message says why.
	Message string
}

// Find returns the path of the call that a request becomes, such as /shop.Books/GetBook, or why it is none. query has
// no question mark. Find does not check whether values fit their fields, or the body.
func (c *Calls) Find(method, path, query string) (call string, refused *Refusal) {
	m := c.root.find(c.split(path), method)
	if m == nil {
		return "", &Refusal{http.StatusNotFound, fmt.Sprintf("no http rule has %s %s", method, path)}
	}
	if c.options.IgnoreUnknown {
		return callPath(m), nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, _, found := strings.Cut(pair, "=")
		if found && name != "" && !slices.Contains(c.options.Ignored, name) &&
			fieldAt(m.Input(), strings.Split(name, ".")) == nil {
			return "", &Refusal{
				http.StatusBadRequest, fmt.Sprintf("query parameter %s is not a field of %s", name, m.Input().FullName()),
			}
		}
	}
	return callPath(m), nil
}

// split returns the segments of a path. The last one may be a verb of a rule.
func (c *Calls) split(path string) []string {
	if at := strings.LastIndexByte(path, ':'); at > strings.LastIndexByte(path, '/') && c.verbs[path[at+1:]] {
		path = path[:at] + "/" + path[at+1:]
	}
	if path = strings.TrimRight(strings.TrimPrefix(path, "/"), "/"); path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// node is what rules have in common up to a segment.
type node struct {
	next map[string]*node
	// methods are the calls of paths that end here, by HTTP method; "*" is any.
	methods map[string]protoreflect.MethodDescriptor
}

func (n *node) isEmpty() bool { return len(n.next)+len(n.methods) == 0 }

// insert adds a call, or returns the other one in its place.
func (n *node) insert(
	segments []string, method string, call protoreflect.MethodDescriptor,
) (other protoreflect.MethodDescriptor) {
	for _, s := range segments {
		if n.next == nil {
			n.next = map[string]*node{}
		}
		if n.next[s] == nil {
			n.next[s] = &node{}
		}
		n = n.next[s]
	}
	if n.methods == nil {
		n.methods = map[string]protoreflect.MethodDescriptor{}
	}
	if other = n.methods[method]; other == nil {
		n.methods[method] = call
	}
	return other
}

// find returns the call of a path: a literal has precedence over *, and * over ** (PathMatcherNode::LookupPath).
func (n *node) find(path []string, method string) protoreflect.MethodDescriptor {
	return n.findFrom(path, method, false)
}

// findFrom is find; afterAny says that n is a **, which matches more segments.
func (n *node) findFrom(path []string, method string, afterAny bool) protoreflect.MethodDescriptor {
	if len(path) == 0 {
		if call := n.callOf(method); call != nil || n.next[anySegments] == nil {
			return call
		}
		return n.next[anySegments].callOf(method)
	}
	if next := n.next[path[0]]; next != nil {
		if call := next.findFrom(path[1:], method, path[0] == anySegments); call != nil {
			return call
		}
	}
	if afterAny {
		return n.findFrom(path[1:], method, true)
	}
	for _, s := range []string{oneSegment, anySegments} {
		if next := n.next[s]; next != nil {
			if call := next.findFrom(path[1:], method, s == anySegments); call != nil {
				return call
			}
		}
	}
	return nil
}

func (n *node) callOf(method string) protoreflect.MethodDescriptor {
	if call := n.methods[method]; call != nil {
		return call
	}
	return n.methods["*"]
}
