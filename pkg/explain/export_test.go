package explain

// IsKnown is for the specs.
func IsKnown(filter string) bool { return isKnown(filter) }
