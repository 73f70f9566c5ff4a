package precheck

import (
	"fmt"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// checkPassword refuses the new value of a secret that filters name as a password or as a key, if the old value is one
// and the new one is not: what the filters are attached to would answer 503. A secret may get its first password later,
// and a rollback may restore what was there.
func (c checker) checkPassword(w store.Written) error {
	is, _ := w.After.(*model.Secret)
	was, _ := w.Before.(*model.Secret)
	if c.rules.Restoring || is == nil || was == nil || was.Value == is.Value {
		return nil
	}
	for _, u := range c.users[w.Key] {
		what, faultOf := usedAs(u, is.Name)
		if faultOf == nil || c.faultOf(was, faultOf) != "" {
			continue
		}
		if fault := c.faultOf(is, faultOf); fault != "" {
			return refusal(u.Key(), fmt.Errorf("the value of its secret %s would not be a %s: it %s", is.Name, what, fault))
		}
	}
	return nil
}

// faultOf says why the value of a secret cannot be used; "" if it can, or cannot be read here.
func (c checker) faultOf(s *model.Secret, faultOf func(string) string) string {
	if c.rules.Unseal == nil {
		return ""
	}
	text, err := s.OpenValue(c.rules.Unseal)
	if err != nil {
		return ""
	}
	return faultOf(text)
}

// usedAs returns what a filter uses a secret as, and what says why a text is none; nil if the filter does not name it in
// such a place.
func usedAs(obj model.Object, secret string) (what string, faultOf func(string) string) {
	f, is := obj.(*model.Filter)
	if !is {
		return "", nil
	}
	spec := f.Parse().Spec
	basic, _ := spec.(*model.BasicAuthFilter)
	tokens, _ := spec.(*model.JWTFilter)
	if either, is := spec.(*model.AnyOfFilter); is {
		basic, tokens = either.BasicAuth, either.JWT
	}
	if tokens != nil {
		for _, t := range tokens.Issuers() {
			if t.HMACKey.Secret == secret {
				return "key for " + t.Algorithm(), t.SharedKeyFault
			}
		}
	}
	if basic == nil {
		return "", nil
	}
	for _, u := range basic.Users {
		if u.Password.Secret == secret {
			return "password", model.PasswordFault
		}
	}
	return "", nil
}
