package pipeline_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// difference returns by which paths, in the form of expect.yaml, one JSON value differs from another, with the values
// there. null means that to has nothing at the path; a map under a path at which from has a value contains further
// paths. Elements of a list that have no place in from are [name] before [other], or [name] last, in full or, if they
// are much like an element of from, as a likeness of it. ok is false if to is shorter than what differs.
func difference(from, to any) (d map[string]any, ok bool) {
	switch to := to.(type) {
	case map[string]any:
		if from, isMap := from.(map[string]any); isMap {
			return mapDifference(from, to), true
		}
	case []any:
		if from, isList := from.([]any); isList {
			d, ok := listDifference(from, to)
			return d, ok && size(d) < size(to)
		}
	}
	return nil, false
}

func mapDifference(from, to map[string]any) map[string]any {
	d := map[string]any{}
	for key, value := range to {
		put(d, keyStep(key), from[key], value)
	}
	for key := range from {
		if _, there := to[key]; !there {
			d[keyStep(key)] = nil
		}
	}
	return d
}

func keyStep(key string) string {
	if key == "" || strings.ContainsAny(key, ".[") {
		return "[" + key + "]"
	}
	return key
}

// put adds what is different at a path. A single path below it becomes part of it.
func put(d map[string]any, at string, from, to any) {
	if reflect.DeepEqual(from, to) {
		return
	}
	below, ok := difference(from, to)
	switch {
	case !ok:
		d[at] = to
	case len(below) > 1:
		d[at] = below
	default:
		for path, value := range below {
			if path[0] != '[' {
				path = "." + path
			}
			d[at+path] = value
		}
	}
}

// listDifference tells elements apart by their names or, if names are missing, by what labels calls them or by their
// index, whichever is shorter.
func listDifference(from, to []any) (map[string]any, bool) {
	d, ok := differenceByLabel(from, to, labels(from, to))
	if ok && differentNames(from) && differentNames(to) {
		return d, true
	}
	byIndex, possible := differenceByIndex(from, to)
	if possible && (!ok || size(byIndex) < size(d)) {
		return byIndex, true
	}
	return d, ok
}

func differenceByLabel(from, to []any, label func(any) string) (map[string]any, bool) {
	d := map[string]any{}
	identity := func(e any) string {
		if l := label(e); l != "" {
			return l
		}
		return asJSON(e)
	}
	at := map[string]int{}
	for i, e := range from {
		at[identity(e)] = i
	}
	kept, last, seen := map[int]bool{}, -1, map[string]bool{}
	places := make([]int, len(to))
	for j, e := range to {
		i, there := at[identity(e)]
		seen[identity(e)] = true
		if !there || i <= last {
			i = -1
		} else {
			kept[i], last = true, i
		}
		places[j] = i
	}
	if len(at) < len(from) || len(seen) < len(to) { // two are the same
		return nil, false
	}
	for i, e := range from {
		if !kept[i] {
			d["["+label(e)+"]"] = nil
		}
	}
	for j, e := range to {
		if places[j] >= 0 {
			put(d, "["+label(e)+"]", from[places[j]], e)
			continue
		}
		path := "[" + label(e) + "] last"
		if j < len(to)-1 {
			path = "[" + label(e) + "] before [" + label(to[j+1]) + "]"
		}
		d[path] = e
		if i, below := closest(from, e); i >= 0 && label(from[i]) != "" {
			d[path] = plain(likeness{label(from[i]), below})
		}
	}
	for path := range d {
		if strings.Contains(path, "[]") { // it has no label
			return nil, false
		}
	}
	return d, true
}

// closest returns the element that is most like e, and the difference to it; -1 if none is much like it.
func closest(from []any, e any) (at int, d map[string]any) {
	at, least := -1, size(e)/2
	for i := range from {
		if below, ok := difference(from[i], e); ok && size(below) < least {
			at, d, least = i, below, size(below)
		}
	}
	return at, d
}

func differenceByIndex(from, to []any) (map[string]any, bool) {
	d, next := map[string]any{}, 0
	for i, e := range from {
		switch {
		case len(from) == len(to):
			put(d, fmt.Sprintf("[%d]", i), e, to[i])
		case next < len(to) && reflect.DeepEqual(e, to[next]):
			next++
		default:
			d[fmt.Sprintf("[%d]", i)] = nil
		}
	}
	return d, len(from) == len(to) || next == len(to)
}

// size is the number of lines of a value, roughly.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			n += size(below)
		}
	case []any:
		for _, below := range v {
			n += size(below)
		}
	}
	return n
}

// labels returns a function that returns what an element of two lists is called: its name or, if names are missing or
// repeated, the first short text in it that no other element has. It is empty if there is none.
func labels(from, to []any) func(any) string {
	if differentNames(from) && differentNames(to) {
		return nameOf
	}
	owners, all := map[string]any{}, slices.Concat(from, to)
	shared := map[string]bool{}
	for _, e := range all {
		for _, text := range texts(e) {
			if owner, there := owners[text]; there && !reflect.DeepEqual(owner, e) {
				shared[text] = true
			}
			owners[text] = e
		}
	}
	return func(e any) string {
		for _, text := range texts(e) {
			if !shared[text] {
				return text
			}
		}
		return ""
	}
}

func nameOf(e any) string {
	fields, _ := e.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// differentNames reports whether the elements of a list have different names.
func differentNames(list []any) bool {
	seen := map[string]bool{"": true}
	for _, e := range list {
		if seen[nameOf(e)] {
			return false
		}
		seen[nameOf(e)] = true
	}
	return true
}

// texts returns the texts in a value, in the order of the keys, that can be between the brackets of a path.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		if text := strings.TrimSpace(v); text != "" && len(text) <= 80 && !strings.ContainsAny(text, "[]\n") {
			return []string{text}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = append(list, texts(v[key])...)
		}
	case []any:
		for _, e := range v {
			list = append(list, texts(e)...)
		}
	}
	return list
}

// apply returns the value of which d is the difference to from.
func apply(from any, d map[string]any) any {
	if list, isList := from.([]any); isList {
		return applyToList(list, d)
	}
	out := maps.Clone(from.(map[string]any))
	for path, value := range d {
		step, rest := cutPath(path)
		key := strings.TrimSuffix(strings.TrimPrefix(step, "["), "]")
		if value == nil && rest == "" {
			delete(out, key)
		} else {
			out[key] = applied(out[key], rest, value)
		}
	}
	return out
}

// applied returns what a value becomes by what a difference says at a path below it.
func applied(from any, path string, value any) any {
	if path != "" {
		return apply(from, map[string]any{path: value})
	}
	switch from.(type) {
	case map[string]any, []any:
		if below, further := value.(map[string]any); further {
			return apply(from, below)
		}
	}
	return value
}

// addedElement is a path of an element that has no place in from.
var addedElement = regexp.MustCompile(`^\[([^\]]*)\](?: before \[([^\]]*)\]| last)$`)

func applyToList(from []any, d map[string]any) []any {
	changed := slices.Clone(from)
	removed, added := map[int]bool{}, map[string]string{}
	values := map[string]any{}
	for path, value := range d {
		if m := addedElement.FindStringSubmatch(path); m != nil {
			fields, _ := value.(map[string]any)
			if like, is := fields["like"].(string); is {
				value = apply(from[find(from, like)], fields["with"].(map[string]any))
			}
			added[m[2]], values[m[1]] = m[1], value
			continue
		}
		step, rest := cutPath(path)
		i := find(from, strings.Trim(step, "[]"))
		removed[i] = value == nil && rest == ""
		changed[i] = applied(from[i], rest, value)
	}
	before := map[int]string{}
	for anchor, label := range added {
		if _, isAdded := values[anchor]; !isAdded && anchor != "" {
			before[find(from, anchor)] = label
		}
	}
	var out []any
	var add func(string)
	add = func(label string) {
		if earlier, there := added[label]; there {
			add(earlier)
		}
		out = append(out, values[label])
	}
	for i, e := range changed {
		if label, there := before[i]; there {
			add(label)
		}
		if !removed[i] {
			out = append(out, e)
		}
	}
	if label, there := added[""]; there {
		add(label)
	}
	return out
}

// find returns the index of an element by its name, a text in it, or the index.
func find(list []any, label string) int {
	for _, is := range []func(any) bool{
		func(e any) bool { return nameOf(e) == label },
		func(e any) bool { return slices.Contains(texts(e), label) },
	} {
		if i := slices.IndexFunc(list, is); i >= 0 {
			return i
		}
	}
	i, err := strconv.Atoi(label)
	Expect(err).NotTo(HaveOccurred(), "no element is called %s", label)
	return i
}

var _ = DescribeTable("A difference of two values says what differs, and gives the second one back",
	func(from, to, want string) {
		var values [3]any
		for i, text := range []string{from, to, want} {
			Expect(json.Unmarshal([]byte(text), &values[i])).To(Succeed(), text)
		}
		d, ok := difference(values[0], values[1])
		Expect(ok).To(BeTrue())
		Expect(any(d)).To(Equal(values[2]))
		Expect(apply(values[0], d)).To(Equal(values[1]))
	},
	Entry("nothing", `{"a": [{"name": "x"}]}`, `{"a": [{"name": "x"}]}`, `{}`),
	Entry("a value, one more and one less", `{"a": 1, "b": 2}`, `{"a": 3, "c": {"x.y": 4}}`,
		`{"a": 3, "b": null, "c": {"x.y": 4}}`),
	Entry("one value far below", `{"a": {"b": {"c": 1, "d": 2}}}`, `{"a": {"b": {"c": 1, "d": 3}}}`, `{"a.b.d": 3}`),
	Entry("several values below", `{"a": {"b": {"c": 1, "d": 2}}}`, `{"a": {"b": {"c": 4, "d": 3}}}`,
		`{"a.b": {"c": 4, "d": 3}}`),
	Entry("a map that becomes empty", `{"a": {"b": 1}}`, `{"a": {}}`, `{"a.b": null}`),
	Entry("a key with dots", `{"a": {"x.y/z": 1}}`, `{"a": {"x.y/z": 2}}`, `{"a[x.y/z]": 2}`),
	Entry("elements by name",
		`{"l": [{"name": "a", "v": 1}, {"name": "b"}, {"name": "c"}]}`, `{"l": [{"name": "a", "v": 2}, {"name": "c"}]}`,
		`{"l": {"[a].v": 2, "[b]": null}}`),
	Entry("added elements",
		`{"l": [{"name": "a"}, {"name": "b"}]}`,
		`{"l": [{"name": "x"}, {"name": "y"}, {"name": "a"}, {"name": "b"}, {"name": "z"}]}`,
		`{"l": {"[x] before [y]": {"name": "x"}, "[y] before [a]": {"name": "y"}, "[z] last": {"name": "z"}}}`),
	Entry("an element that moved",
		`{"l": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}`, `{"l": [{"name": "a"}, {"name": "c"}, {"name": "b"}]}`,
		`{"l": {"[b]": null, "[b] last": {"name": "b"}}}`),
	Entry("an added element that is like another",
		`[{"name": "a", "u": 1, "v": [1, 2, 3]}]`,
		`[{"name": "a", "u": 1, "v": [1, 2, 3]}, {"name": "b", "u": 1, "v": [1, 2, 3]}]`,
		`{"[b] last": {"like": "a", "with": {"name": "b"}}}`),
	Entry("elements without names, by a text that no other has",
		`{"l": [{"k": {"p": "x-"}}, {"k": {"e": "one"}}, {"k": {"e": "two"}}]}`,
		`{"l": [{"k": {"p": "x-"}}, {"k": {"e": "two"}}]}`,
		`{"l[one]": null}`),
	Entry("elements of one name without a text of their own, by index",
		`{"l": [{"name": "a", "v": 1}, {"name": "a", "v": 2}]}`, `{"l": [{"name": "a", "v": 2}]}`, `{"l[0]": null}`),
	Entry("as many elements as before, by index",
		`{"l": [{"v": 1}, {"v": 2}]}`, `{"l": [{"v": 1}, {"v": 3}]}`, `{"l[1].v": 3}`),
	Entry("more below elements without names, by index",
		`{"l": [{"k": "one", "u": {"v": 1, "w": 2}}]}`, `{"l": [{"k": "two", "u": {"v": 1, "w": 2}}]}`, `{"l[0].k": "two"}`),
	Entry("a list that has little in common", `{"l": [1, 2]}`, `{"l": [3, 4, 5]}`, `{"l": [3, 4, 5]}`),
)
