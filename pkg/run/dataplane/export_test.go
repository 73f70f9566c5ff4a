package dataplane

// Exported for the specs.
var (
	AdminHandler = adminHandler
	OpenAdmin    = openAdmin
)
