package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// printChanges prints a line for each object that changes, and one for each value in it that does:
// of an object that is new or goes, those that are neither empty nor the default.
func printChanges(p *printer, list []client.Change) {
	signs := map[string]string{"create": "+", "update": "~", "delete": "-"}
	for _, c := range list {
		sign, ok := signs[c.Action]
		if !ok {
			sign = client.Printable(c.Action)
		}
		p.line("%s %s", sign, client.Printable(c.Path))
		for _, f := range c.Fields {
			switch name := client.Printable(f.Field); {
			case f.Default:
			case c.Action == "create" && !isEmpty(f.After):
				p.line("    %s: %s", name, value(f.After))
			case c.Action == "delete" && !isEmpty(f.Before):
				p.line("    %s: %s", name, value(f.Before))
			case c.Action != "create" && c.Action != "delete":
				printDifference(p, name, f.Before, f.After)
			}
		}
	}
}

// isEmpty reports whether a value in JSON says nothing.
func isEmpty(raw json.RawMessage) bool {
	return slices.Contains([]string{"", "null", `""`, "[]", "{}"}, compact(raw))
}

// printDifference prints a line for each value that differs, with the path that leads to it.
func printDifference(p *printer, name string, before, after json.RawMessage) {
	var was, is map[string]json.RawMessage
	var wasList, isList []json.RawMessage
	switch {
	case compact(before) == compact(after):
	case read(before, &was) && read(after, &is):
		for _, key := range slices.Sorted(maps.Keys(union(was, is))) {
			printDifference(p, name+"."+client.Printable(key), was[key], is[key])
		}
	case read(before, &wasList) && read(after, &isList):
		printItems(p, name, wasList, isList)
	default:
		p.line("    %s: %s -> %s", name, value(before), value(after))
	}
}

// printItems prints what differs between two lists, without what they begin and end with alike.
func printItems(p *printer, name string, was, is []json.RawMessage) {
	same := func(i, j int) bool { return compact(was[i]) == compact(is[j]) }
	first := 0
	for first < min(len(was), len(is)) && same(first, first) {
		first++
	}
	wasEnd, isEnd := len(was), len(is)
	for wasEnd > first && isEnd > first && same(wasEnd-1, isEnd-1) {
		wasEnd, isEnd = wasEnd-1, isEnd-1
	}
	for i := first; i < max(wasEnd, isEnd); i++ {
		var before, after json.RawMessage
		if i < wasEnd {
			before = was[i]
		}
		if i < isEnd {
			after = is[i]
		}
		printDifference(p, fmt.Sprintf("%s[%d]", name, i), before, after)
	}
}

// read reports whether raw is an object or a list, as to takes it.
func read[T map[string]json.RawMessage | []json.RawMessage](raw json.RawMessage, to *T) bool {
	return len(raw) > 0 && string(raw) != "null" && json.Unmarshal(raw, to) == nil
}

func union(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
