package pipeline_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// unexpected compares a decoded JSON document with the expected values of paths
// and returns a sentence for each difference. A map as a value contains further
// paths; only an empty map means itself. null means that the last step of the
// path does not exist. Every other step must exist.
func unexpected(document any, expected map[string]any, at string) (list []string) {
	for _, path := range slices.Sorted(maps.Keys(expected)) {
		want, place := expected[path], strings.TrimPrefix(at+"."+path, ".")
		have, err := lookUp(document, path)
		if err != nil {
			list = append(list, fmt.Sprintf("%s: %s", place, err))
			continue
		}
		below, isMap := want.(map[string]any)
		switch {
		case isMap && len(below) > 0 && have == nil:
			list = append(list, place+" is not there")
		case isMap && len(below) > 0:
			list = append(list, unexpected(have, below, place)...)
		case !reflect.DeepEqual(have, want):
			list = append(list, fmt.Sprintf("%s is %s, not %s", place, asJSON(have), asJSON(want)))
		}
	}
	return list
}

// lookUp returns the value at a path, nil if it does not exist. Dots separate the
// keys of a path. After a key, [2] is an element of a list by its index, [-1] the
// last one, [shop] the element of that name or the value of a key, and [*] all
// elements: the rest of the path applies to each.
func lookUp(document any, path string) (any, error) {
	key, rest := cutPath(path)
	next, err := step(document, key)
	if rest == "" || err != nil {
		return next, err
	}
	if next == nil {
		return nil, fmt.Errorf("there is no %s", key)
	}
	list, isList := next.([]any)
	if key != "[*]" || !isList {
		return lookUp(next, rest)
	}
	all := make([]any, len(list))
	for i := range list {
		if all[i], err = lookUp(list[i], rest); err != nil {
			return nil, fmt.Errorf("of element %d %w", i, err)
		}
	}
	return all, nil
}

// cutPath returns the first step of a path, which is a key or a pair of brackets
// with its content, and the rest.
func cutPath(path string) (key, rest string) {
	end := strings.IndexAny(path[1:], ".[") + 1
	if path[0] == '[' {
		end = strings.IndexByte(path, ']') + 1
	}
	if end == 0 || end == len(path) {
		return path, ""
	}
	return path[:end], strings.TrimPrefix(path[end:], ".")
}

func step(from any, key string) (any, error) {
	name, inBrackets := strings.CutPrefix(key, "[")
	name = strings.TrimSuffix(name, "]")
	switch from := from.(type) {
	case map[string]any:
		return from[name], nil
	case []any:
		if !inBrackets {
			return nil, fmt.Errorf("%s is looked for in a list; write [*].%s", key, key)
		}
		if name == "*" {
			return from, nil
		}
		if i, err := strconv.Atoi(name); err == nil {
			if i < 0 {
				i += len(from)
			}
			if i < 0 || i >= len(from) {
				return nil, nil
			}
			return from[i], nil
		}
		return named(from, name)
	}
	return nil, fmt.Errorf("%s is looked for in %s", key, asJSON(from))
}

func named(list []any, name string) (found any, err error) {
	for _, element := range list {
		if fields, ok := element.(map[string]any); ok && (fields["name"] == name || fields["cluster_name"] == name) {
			if found != nil {
				return nil, fmt.Errorf("there are two %q", name)
			}
			found = element
		}
	}
	return found, nil
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

var _ = Describe("An expectation", func() {
	const text = `{
		"timeout": "5s", "empty": {}, "map": {"a.b/c": 1},
		"hosts": [{"name": "shop", "routes": [{"name": "a", "weight": 1}, {"name": "b"}]}, {"name": "rest"}],
		"twins": [{"name": "x"}, {"name": "x"}]
	}`
	DescribeTable("is compared with the actual value",
		func(path, want string, differences ...string) {
			var document, value any
			Expect(json.Unmarshal([]byte(text), &document)).To(Succeed())
			Expect(json.Unmarshal([]byte(want), &value)).To(Succeed())
			Expect(unexpected(document, map[string]any{path: value}, "")).To(HaveExactElements(differences))
		},
		Entry("the same", "timeout", `"5s"`),
		Entry("another value", "timeout", `"6s"`, `timeout is "5s", not "6s"`),
		Entry("another type", "hosts[shop].routes[a].weight", `"1"`, `hosts[shop].routes[a].weight is 1, not "1"`),
		Entry("no value", "grace", `null`),
		Entry("no value instead of one", "timeout", `null`, `timeout is "5s", not null`),
		Entry("a value instead of none", "grace", `"5s"`, `grace is null, not "5s"`),
		Entry("no value in an object that does not exist", "hosts[other].routes", `null`, `hosts[other].routes: there is no [other]`),
		Entry("an element by its name", "hosts[shop].routes[b].weight", `null`),
		Entry("an element by its index", "hosts[1].name", `"rest"`),
		Entry("an element from the end", "hosts[-2].name", `"shop"`),
		Entry("an element after the last", "hosts[2]", `null`),
		Entry("an element before the first", "hosts[-3]", `null`),
		Entry("a value by a key with dots", "map[a.b/c]", `1`),
		Entry("all elements, in order", "hosts[*].name", `["shop","rest"]`),
		Entry("all elements in another order", "hosts[*].name", `["rest","shop"]`, `hosts[*].name is ["shop","rest"], not ["rest","shop"]`),
		Entry("two of one name", "twins[x].name", `"x"`, `twins[x].name: there are two "x"`),
		Entry("a key of a list", "hosts.name", `"shop"`, `hosts.name: name is looked for in a list; write [*].name`),
		Entry("a key of a text", "timeout.seconds", `5`, `timeout.seconds: seconds is looked for in "5s"`),
		Entry("an empty map", "empty", `{}`),
		Entry("an empty map for a missing one", "map", `{}`, `map is {"a.b/c":1}, not {}`),
		Entry("further paths", "hosts[shop]", `{"routes[a].weight": 1, "routes[b].name": "c"}`, `hosts[shop].routes[b].name is "b", not "c"`),
		Entry("further paths of a missing value", "hosts[other]", `{"routes": null}`, "hosts[other] is not there"),
	)
})
