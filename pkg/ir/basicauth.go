package ir

// BasicAuth requires a user name and a password.
type BasicAuth struct {
	// Users are sorted by name.
	Users []User `json:"users"`
	// Forward passes the password on to the backend.
	Forward bool `json:"forward,omitempty"`
}

// User is a user that Envoy accepts.
type User struct {
	Name string `json:"name"`
	// Hash is the SHA-1 of the password in the format of htpasswd.
	Hash string `json:"hash"`
}
