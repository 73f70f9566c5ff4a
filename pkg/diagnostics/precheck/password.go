package precheck

import (
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// checkPassword refuses the new value of a secret that filters name as a password, if the old value is one and the
// new one is not: what the filters are attached to would answer 503. A secret may get its first password later, and a
// rollback may restore what was there.
func (c checker) checkPassword(w store.Written) error {
	is, _ := w.After.(*model.Secret)
	was, _ := w.Before.(*model.Secret)
	if c.rules.Restoring || is == nil || was == nil || was.Value == is.Value || c.passwordFault(was) != "" {
		return nil
	}
	fault := c.passwordFault(is)
	if fault == "" {
		return nil
	}
	for _, u := range c.users[w.Key] {
		if namesPassword(u, is.Name) {
			return refusal(u.Key(), fmt.Errorf("the value of its secret %s would not be a password: it %s", is.Name, fault))
		}
	}
	return nil
}

// passwordFault says why the value of a secret is no password; "" if it is one, or cannot be read here.
func (c checker) passwordFault(s *model.Secret) string {
	if c.rules.Unseal == nil {
		return ""
	}
	text, err := s.OpenValue(c.rules.Unseal)
	if err != nil {
		return ""
	}
	return model.PasswordFault(text)
}

// namesPassword reports whether an object is a filter with a user whose password is in the secret.
func namesPassword(obj model.Object, secret string) bool {
	f, is := obj.(*model.Filter)
	if !is {
		return false
	}
	spec := f.Parse().Spec
	if either, is := spec.(*model.AnyOfFilter); is && either.BasicAuth != nil {
		spec = either.BasicAuth
	}
	basic, is := spec.(*model.BasicAuthFilter)
	if !is {
		return false
	}
	for _, u := range basic.Users {
		if u.Password.Secret == secret {
			return true
		}
	}
	return false
}
