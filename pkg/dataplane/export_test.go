package dataplane

// What the specs look at.
var (
	AdminHandler = adminHandler
	OpenAdmin    = openAdmin
)
