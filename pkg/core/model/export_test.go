package model

// LaterTypes are the types that this version refuses, for specs.
func LaterTypes() []string { return laterTypes() }

// FindType returns which of the types has a name, for specs; empty means none.
func FindType(types []string, name string) string {
	list := make([]configType, len(types))
	for i, t := range types {
		list[i].name = t
	}
	t, _ := findType(list, name)
	return t.name
}
