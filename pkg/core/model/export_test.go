package model

// LaterTypes are the types that this version refuses, for specs.
func LaterTypes() []string { return laterTypes() }
