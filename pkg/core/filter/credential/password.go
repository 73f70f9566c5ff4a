package credential

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// basicAuthFilter is the name of the filter that requires a user name and a password.
	basicAuthFilter = "envoy.filters.http.basic_auth"
	// passwordFilter is the name of the filter that removes the password before the backend. It has its own row, since
	// a route may keep what its host removes.
	passwordFilter                      = "envoy.filters.http.header_mutation/password"
	basicAuthKey   seam.Key[*BasicAuth] = "basicAuth"
)

// BasicAuth requires a user name and a password.
type BasicAuth struct {
	// Users are sorted by name.
	Users []User `json:"users"`
	// Forward passes the password on to the backend.
	Forward bool `json:"forward,omitempty"`
	// Filter is the name of the filter with the users.
	Filter string `json:"-"`
}

// User is a user that Envoy accepts.
type User struct {
	Name string `json:"name"`
	// Hash is the SHA-1 of the password in the form of htpasswd -s.
	Hash string `json:"hash"`
}

func addBasicAuth(_ *BasicAuth, f *model.BasicAuthFilter, at seam.Place) (*BasicAuth, error) {
	return basicAuthOf(f, "", at)
}

// basicAuthOf opens the passwords and keeps what Envoy compares. in is their place in the JSON, for
// model.PasswordPlace. It fails if one password cannot be opened, since that user would be locked out without an
// explanation.
func basicAuthOf(f *model.BasicAuthFilter, in string, at seam.Place) (*BasicAuth, error) {
	if at.Open == nil {
		return nil, errors.New("passwords cannot be read")
	}
	b := &BasicAuth{Forward: f.Forward, Filter: at.Key.Name()}
	for _, u := range f.Users {
		password, err := passwordOf(u, in, at)
		if err != nil {
			return nil, err
		}
		b.Users = append(b.Users, User{Name: u.Name, Hash: model.PasswordHash(password)})
	}
	slices.SortFunc(b.Users, func(a, b User) int { return cmp.Compare(a.Name, b.Name) })
	return b, nil
}

func passwordOf(u model.User, in string, at seam.Place) (string, error) {
	if name := u.Password.Secret; name != "" {
		password, err := at.Secret(name)
		if err != nil {
			return "", err
		}
		if what := model.PasswordFault(password); what != "" {
			return "", fmt.Errorf("the value of secret %s is not a password: it %s", name, what)
		}
		return password, nil
	}
	if !model.IsSealed(u.Password.Text) {
		return u.Password.Text, nil
	}
	password, err := at.Open(u.Password.Text, model.PasswordPlace(at.Key.Name(), in, u.Name))
	if err != nil {
		return "", fmt.Errorf("the password of %s cannot be read: it was sealed with another key", u.Name)
	}
	return password, nil
}

// nobodysPassword is a list with one user, since a list must not be empty. Nobody can be that user: no text is known
// whose SHA-1 is all zeros.
const nobodysPassword = "-:{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA="

// refusePasswords refuses every request. It names the user to the upstream in the same header as the client of an API
// key. A user name has no slash; a client's name has one.
func refusePasswords(ir.Listener) []seam.Message {
	return []seam.Message{{Name: basicAuthFilter, Config: &basicauthv3.BasicAuth{
		Users: seam.Inline(nobodysPassword), ForwardUsernameHeader: clientHeader, EmitDynamicMetadata: true,
	}}}
}

func password(d demands) []seam.Message {
	if d.basicAuth == nil {
		return nil
	}
	return []seam.Message{{Name: basicAuthFilter, Config: usersOf(d.basicAuth)}}
}

func usersOf(b *BasicAuth) *basicauthv3.BasicAuthPerRoute {
	var users []string
	for _, u := range b.Users {
		users = append(users, u.Name+":"+u.Hash)
	}
	return &basicauthv3.BasicAuthPerRoute{Users: seam.Inline(strings.Join(users, "\n"))}
}

// removePassword removes the password of a host on all routes without a setting of their own. Public routes are among
// them: a browser repeats a password on the host's other paths.
func removePassword(d demands) []seam.Message {
	if b := d.allBasicAuth(); b == nil || b.Forward {
		return nil
	}
	return seam.RequestMutations(passwordFilter, seam.RemoveHeaders("authorization"))
}
