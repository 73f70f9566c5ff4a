package translate

import (
	"fmt"
	"slices"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// consumer makes the consumer of a Consumer. All that it claims is of its namespace: its name, its groups, and the key
// sets and filters of its credentials.
func (s *scope) consumer(u *unit, o *gatewayv1.Consumer) {
	for _, p := range s.world.proxies {
		s.proxies = append(s.proxies, p.Name)
	}
	slices.Sort(s.proxies)
	c := &model.Consumer{Name: objectName(s.of.Namespace, s.of.Name)}
	for _, g := range o.Spec.Groups {
		if strings.Contains(string(g), "@") {
			s.problem("spec.groups", Invalid, "%q is not a word: the part after the @ is the namespace", g)
			return // it may be one that is refused somewhere
		}
		c.Groups = append(c.Groups, groupOf(s.of.Namespace, string(g)))
	}
	c.Groups = model.NewTags(c.Groups)
	for i, cred := range credentialsOf(o) {
		if holder := s.world.holder(cred.claim()); holder != nil && holder != u {
			s.problem(cred.path(i, len(o.Spec.Keys)), CredentialConflict, "%s has it and is older; this one does not have it", holder.ref)
			continue
		}
		if cred.isKey {
			c.Credentials.Keys = append(c.Credentials.Keys, cred.name)
		} else {
			c.Credentials.Users = append(c.Credentials.Users, cred.name)
		}
	}
	fields := map[string]string{"Consumer_name": "metadata.name", "Consumer_groups": "spec.groups", "Consumer_credentials": "spec"}
	if !s.reports(c.Validate(), fields) {
		s.make(c, "")
	}
}

// groupOf is the name of a namespace's group. No Consumer of another one can have it.
func groupOf(namespace, group string) string { return group + "@" + namespace }

// credential is a credential of a Consumer.
type credential struct {
	isKey bool
	// name is SET/KEY or FILTER/USER, with the names of the store.
	name string
}

// credentialsOf lists the credentials that a Consumer names: keys, then users.
func credentialsOf(o *gatewayv1.Consumer) (list []credential) {
	for _, k := range o.Spec.Keys {
		list = append(list, credential{true, objectName(o.Namespace, string(k.SecretName)) + "/" + k.Key})
	}
	for _, c := range o.Spec.Users {
		list = append(list, credential{false, objectName(o.Namespace, string(c.Filter)) + "/" + c.User})
	}
	return list
}

// claim is what only one Consumer can have.
func (c credential) claim() claim {
	return claim{gatewayv1.KindConsumer, "", fmt.Sprintf("%t %s", c.isKey, c.name)}
}

// path is the field of the credential at an index of all, of which some are keys.
func (c credential) path(index, keys int) string {
	if c.isKey {
		return fmt.Sprintf("spec.keys[%d]", index)
	}
	return fmt.Sprintf("spec.users[%d]", index-keys)
}

// ownConsumers gives the consumers and groups in the configuration of a filter their names in the store: those of the
// object's namespace. Only a GlobalConfig may name groups of another one, as GROUP@NAMESPACE.
func (s *scope) ownConsumers(at string, f *model.Filter) bool {
	ok, given := true, map[string]bool{}
	config, err := f.MapConsumers(func(path, name string, isGroup bool) string {
		group, namespace, qualified := strings.Cut(name, "@")
		switch {
		case !isGroup:
			name = objectName(s.of.Namespace, name)
		case !qualified:
			name = groupOf(s.of.Namespace, group)
		case namespace != s.of.Namespace && s.of.Kind != gatewayv1.KindGlobalConfig:
			s.problem(at, Invalid, "%s: %q is a group of another namespace: only a GlobalConfig may name it", path, name)
			ok = false
		}
		given[name] = true
		return name
	})
	if err != nil {
		s.problem(at, Invalid, "%s", err)
		return false
	}
	f.Config = config
	for _, name := range f.Parse().Consumers() { // a text that was parsed differently than it was replaced
		if !given[name] {
			s.problem(at, Invalid, "it names %q in a way that cannot be read", name)
			ok = false
		}
	}
	return ok
}
