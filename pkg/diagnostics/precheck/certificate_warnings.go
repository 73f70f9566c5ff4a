package precheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// certificateWarnings warns of certificates that are not valid now, of services that
// lose theirs because a secret was replaced, and of services that need one and have
// none.
func (rules Rules) certificateWarnings(r store.Reader, written store.Changes) ([]string, error) {
	w := certificateWarner{rules: rules, reader: r, services: map[model.Key]bool{}}
	for c, err := range written(model.KindSecret, model.KindService, model.KindServiceSecret) {
		if err != nil {
			return nil, err
		}
		switch o := c.After.(type) {
		case *model.Secret:
			err = w.secret(o, c.Before)
		case *model.Service:
			if o.HTTPS != model.HTTPSBoth || o.ClientCACertificate != "" {
				w.services[o.Key()] = true
			}
		}
		if c.Key.Kind == model.KindServiceSecret {
			w.services[c.Key.Owner()] = true
		}
		if err != nil || len(w.services) > maxAttachments {
			return w.list, err
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.services),
		func(a, b model.Key) int { return strings.Compare(a.Name(), b.Name()) }) {
		if err := w.needs(key); err != nil {
			return nil, err
		}
	}
	return w.list, nil
}

type certificateWarner struct {
	rules  Rules
	reader store.Reader
	// services are the services to check.
	services map[model.Key]bool
	list     []string
}

func (w *certificateWarner) warn(format string, args ...any) {
	w.list = append(w.list, fmt.Sprintf(format, args...))
}

func (w *certificateWarner) secret(s *model.Secret, before model.Object) error {
	was, _ := before.(*model.Secret)
	if was != nil && was.Cert == s.Cert && was.SNI == s.SNI && was.IsPair() == s.IsPair() {
		return nil
	}
	now := w.rules.now()
	if end, ended := hasEnded(s, now); ended {
		w.warn("the certificate of secret %q expired on %s: clients refuse it", s.Name, day(end))
	}
	if leaf := s.Leaf(); leaf != nil && leaf.NotBefore.After(now) {
		w.warn("the certificate of secret %q is not valid before %s: clients refuse it until then", s.Name,
			day(leaf.NotBefore))
	}
	if was == nil {
		return nil
	}
	links, err := w.reader.List(store.Query{
		Kind: model.KindServiceSecret, To: []model.Key{s.Key()}, Limit: maxAttachments,
	})
	if err != nil {
		return err
	}
	for _, l := range links {
		w.services[l.Key().Owner()] = true
		if err := w.warnLostHosts(l.Key().Owner(), was, s); err != nil {
			return err
		}
	}
	return nil
}

// warnLostHosts warns of the hosts of a service that lose their certificate.
func (w *certificateWarner) warnLostHosts(service model.Key, was, is *model.Secret) error {
	svc, found, err := find[*model.Service](w.reader, service)
	if !found {
		return err
	}
	secrets, err := w.secretsOf(service)
	if err != nil {
		return err
	}
	var lost []string
	for _, host := range was.HostsFor(svc.FQDN) {
		if !slices.ContainsFunc(secrets, func(s *model.Secret) bool { return s.ShownFor(host) }) {
			lost = append(lost, host)
		}
	}
	has := "now has no certificate with a key"
	if is.IsPair() {
		has = "is for " + strings.Join(model.NamesOf(is.Leaf()), ", ") + " now"
	}
	if len(lost) > 0 {
		w.warn("service %q loses its certificate for %s: secret %q %s", svc.Name, strings.Join(lost, ", "), is.Name, has)
	} else if len(was.HostsFor(svc.FQDN)) == 0 && is.NotFor(svc.FQDN) != "" {
		w.warn("secret %q %s: service %q, to which it is attached, has the fqdn %s", is.Name, is.NotFor(svc.FQDN), svc.Name,
			svc.FQDN)
	}
	return nil
}

// needs warns if a service needs a certificate and has none.
func (w *certificateWarner) needs(service model.Key) error {
	svc, found, err := find[*model.Service](w.reader, service)
	if !found {
		return err
	}
	if svc.HTTPS == model.HTTPSBoth && svc.ClientCACertificate == "" {
		return nil
	}
	secrets, err := w.secretsOf(service)
	if err != nil || slices.ContainsFunc(secrets,
		func(s *model.Secret) bool { return s.IsPair() && s.NotFor(svc.FQDN) == "" }) {
		return err
	}
	w.list = append(w.list, svc.NeedsCertificate())
	return nil
}

// secretsOf returns the secrets that are attached to a service.
func (w *certificateWarner) secretsOf(service model.Key) ([]*model.Secret, error) {
	links, err := w.reader.List(store.Query{Kind: model.KindServiceSecret, To: []model.Key{service}})
	if err != nil {
		return nil, err
	}
	var list []*model.Secret
	for _, l := range links {
		s, found, err := find[*model.Secret](w.reader, l.Key().Attached())
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, s)
		}
	}
	return list, nil
}
