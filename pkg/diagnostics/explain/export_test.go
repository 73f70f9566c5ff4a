package explain

// IsKnown exports isKnown to the specs.
func IsKnown(filter string) bool { return isKnown(filter) }
