package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// BasicAuthFilter requires a user name and a password (RFC 7617). A route's filter replaces its service's, and its
// service's login or tokens.
// +page=basicauth.md
// +example={users: [{name: ann, password: correct-horse-battery}, {name: bob, password: {secret: bob}}]}
type BasicAuthFilter struct {
	// The users whose requests are accepted.
	// +required
	// +minItems=1
	// +maxItems=maxUsers
	Users []User `json:"users"`
	// Whether the upstream receives the password too. Default: false, the header is removed.
	Forward bool `json:"forward,omitempty"`
}

// User has a name and a password.
type User struct {
	// The upstream receives it in x-client. It is unique.
	// +required
	// +maxLength=maxUserName
	// +pattern=^[A-Za-z0-9._@+-]+$
	Name string `json:"name"`
	// +required
	Password Password `json:"password"`
}

// Password has at least 12 characters, or is a line of htpasswd -s: {SHA} and the base64 of the SHA-1 of a password. A
// string is stored sealed and shown as <redacted>. Writing <redacted> back for a user of the same name keeps the stored
// password. An object names a secret with the password.
// +anyOf=[{type: string, minLength: 1, maxLength: maxClientSecret}, {type: object, required: [secret],
// additionalProperties: false, properties: {secret: {$ref: "#/components/schemas/Name"}}}]
type Password struct {
	// Text may be sealed.
	Text string `json:"-"`
	// Secret is in JSON the object {"secret": NAME}.
	Secret string `json:"-"`
}

const (
	// passwordKey is the path of passwords in the JSON.
	passwordKey = "users.password"
	// maxUsers bounds a list that comes with every change of a route.
	maxUsers    = 1000
	maxUserName = 128
	// MinPassword is in characters, maxPassword in bytes.
	MinPassword = 12
	maxPassword = 256
)

// UnmarshalJSON reads either form.
func (p *Password) UnmarshalJSON(b []byte) (err error) {
	p.Text, p.Secret, err = textOrSecret("password", b)
	return err
}

// MarshalJSON writes what UnmarshalJSON reads.
func (p Password) MarshalJSON() ([]byte, error) {
	var value any = p.Text
	if p.Secret != "" {
		value = map[string]string{"secret": p.Secret}
	}
	var out bytes.Buffer
	err := writeJSON(&out, value)
	return out.Bytes(), err
}

// PasswordPlace is what the password of a user of a filter is sealed for. at is where the users are in its JSON, with a
// dot behind it, or empty.
func PasswordPlace(filter, at, user string) string {
	return "filter/" + filter + "/" + at + "users[" + user + "].password"
}

func readBasicAuth(v *validator, at, _ string, config JSON) Spec {
	var f BasicAuthFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	switch {
	case len(f.Users) == 0:
		v.add(at+".users", "is empty, so no request would be allowed; give each user a name and a password")
	case len(f.Users) > maxUsers:
		v.add(at+".users", "has %d users; at most %d are allowed: use API keys, or a login", len(f.Users), maxUsers)
	}
	seen := map[string]bool{}
	for i, u := range f.Users {
		field := fmt.Sprintf("%s.users[%d]", at, i)
		if !IsUserName(u.Name) {
			v.add(field+".name", "%q is not a user name of 1 to %d characters of A-Z a-z 0-9 . _ @ + -", u.Name, maxUserName)
		} else if seen[u.Name] {
			v.add(field+".name", "%q is listed twice", u.Name)
		}
		seen[u.Name] = true
		v.password(field+".password", u.Password)
	}
	return &f
}

// IsUserName reports whether a user of passwords may have a name.
func IsUserName(name string) bool {
	return name != "" && len(name) <= maxUserName &&
		!strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) && r != '@' && r != '+' })
}

// password does not repeat it.
func (v *validator) password(field string, p Password) {
	switch {
	case p.Secret != "":
		v.secretName(field+".secret", p.Secret)
	case p.Text == Redacted || IsSealed(p.Text):
	case p.Text == "":
		v.add(field, "is required")
	default:
		if what := PasswordFault(p.Text); what != "" {
			v.add(field, "%s", what)
		}
	}
}

// PasswordHash is a password as Envoy compares it. The text may be that already.
func PasswordHash(text string) string {
	if IsKeyHash(text) {
		return text
	}
	return HashKey([]byte(text))
}

// PasswordFault says why nobody should have a password, or could send it; empty means that all is well.
func PasswordFault(text string) string {
	switch {
	case strings.HasPrefix(text, keyHashPrefix) && !IsKeyHash(text):
		return "begins with {SHA}, and is not the base64 of a SHA-1, as htpasswd -s writes it"
	case utf8.RuneCountInString(text) < MinPassword:
		return "has fewer than 12 characters: Envoy holds its SHA-1, from which a short password is found quickly"
	case len(text) > maxPassword:
		return "has more than 256 bytes"
	case !isText(text) || text != strings.TrimSpace(text):
		return "begins or ends with a space, or has a control character, such as the line feed at the end of a file"
	}
	return ""
}

// Advice says how far the passwords can be trusted.
func (f *BasicAuthFilter) Advice() []string {
	return []string{"keeps passwords in Envoys as SHA-1 without salt: " +
		"whoever reads the memory of an Envoy can guess them quickly. Give each user a long random password, " +
		"or use API keys or a login"}
}

func (f *BasicAuthFilter) uses() []Key {
	var keys []Key
	for _, u := range f.Users {
		if key := SecretKey(u.Password.Secret); u.Password.Secret != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
