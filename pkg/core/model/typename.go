package model

import (
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
)

// A type of filters or global configs has two names: that of the customer's specification, which says where Envoy has it
// (vh_filter_cors), and a short one (cors). Objects keep the name that was written, so that answers and documents say
// what clients sent. Whatever depends on the type compares the long one: that of a ParsedFilter and a ParsedGlobalConfig,
// and TypeName of an object.

// typePrefixes begin the names of types.
func typePrefixes() []string {
	return []string{"http_filter_", "route_filter_", "vh_filter_", "globalconfig_"}
}

// ShortType returns the short name of a type; that of a list is its name.
func ShortType(name string) string {
	for _, prefix := range typePrefixes() {
		if short, has := strings.CutPrefix(name, prefix); has {
			return short
		}
	}
	return name
}

// WrittenTypes lists all names of the types of a kind: first the long ones, then the short ones.
func WrittenTypes(kind Kind) []string {
	names := ConfigTypes(kind)
	for _, name := range slices.Clone(names) {
		if short := ShortType(name); short != name {
			names = append(names, short)
		}
	}
	return names
}

// findType returns the type with a name, which may be the short one. A short name that two types would have is that of
// neither.
func findType(types []configType, name string) (configType, bool) {
	var found configType
	for _, t := range types {
		switch {
		case t.name == name:
			return t, true
		case ShortType(t.name) == name && found.name != "":
			return configType{}, false
		case ShortType(t.name) == name:
			found = t
		}
	}
	return found, found.name != ""
}

// longType returns the long name of a type; one that is not known is returned as it is.
func longType(types []configType, name string) string {
	if t, known := findType(types, name); known {
		return t.name
	}
	return name
}

// TypeName returns the long name of the filter's type.
func (f *Filter) TypeName() string { return longType(filterTypes(), f.Type) }

// TypeName returns the long name of the global config's type.
func (g *GlobalConfig) TypeName() string { return longType(globalConfigTypes(), g.Type) }

// unknownType says which types there are, and which of them may be meant: one with another prefix, or a similar one.
func (v *validator) unknownType(field, name string, types []configType) {
	known := typeNames(types)
	all := slices.Clone(known)
	for _, t := range known {
		all = append(all, ShortType(t))
	}
	best, near := suggest.Nearest(name, all)
	if t, found := findType(types, ShortType(name)); found {
		best, near = t.name, true
	}
	if near {
		v.add(field, "%q is not one of %s; did you mean %s?", name, strings.Join(known, ", "), best)
		return
	}
	v.add(field, "%q is not one of %s", name, strings.Join(known, ", "))
}
