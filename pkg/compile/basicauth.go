package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostBasicAuth(h *ir.Host, f *model.BasicAuthFilter, at Place) (err error) {
	h.BasicAuth, err = basicAuthOf(f, "", at)
	return err
}

func addRouteBasicAuth(r *ir.Route, f *model.BasicAuthFilter, at Place) (err error) {
	r.BasicAuth, err = basicAuthOf(f, "", at)
	return err
}

// basicAuthOf opens the passwords and keeps what Envoy compares. in is their place in the JSON, for
// model.PasswordPlace. It fails if one password cannot be opened, since that user would be locked out without an
// explanation.
func basicAuthOf(f *model.BasicAuthFilter, in string, at Place) (*ir.BasicAuth, error) {
	if at.Open == nil {
		return nil, errors.New("passwords cannot be read")
	}
	b := &ir.BasicAuth{Forward: f.Forward}
	for _, u := range f.Users {
		password, err := passwordOf(u, in, at)
		if err != nil {
			return nil, err
		}
		b.Users = append(b.Users, ir.User{Name: u.Name, Hash: model.HashKey([]byte(password))})
	}
	slices.SortFunc(b.Users, func(a, b ir.User) int { return cmp.Compare(a.Name, b.Name) })
	return b, nil
}

func passwordOf(u model.User, in string, at Place) (string, error) {
	if name := u.Password.Secret; name != "" {
		password, err := secretValue(name, at)
		if err != nil {
			return "", err
		}
		if what := model.PasswordFault(password); what != "" {
			return "", fmt.Errorf("secret %s has a value that is no password: it %s", name, what)
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
