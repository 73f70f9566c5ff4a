package ir

// BasicAuth asks for a user name and a password.
type BasicAuth struct {
	// Users are sorted by name.
	Users []User `json:"users"`
	// Forward leaves the password on the way to the backend.
	Forward bool `json:"forward,omitempty"`
}

// User is somebody whom Envoy knows.
type User struct {
	Name string `json:"name"`
	// Hash is the SHA-1 of the password in the form of htpasswd.
	Hash string `json:"hash"`
}
