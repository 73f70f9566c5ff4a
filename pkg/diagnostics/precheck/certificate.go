package precheck

import (
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// These are the fields that name or contain certificates.
const (
	clientCAField     = "Client_validation_cacertificate"
	upstreamCAField   = "Upstream_validation_cacertificate"
	upstreamPairField = "Upstream_client_certificate"
	certField         = "Secret_cert"
)

// checkCertificates refuses certificates that a change has put where they cannot
// work.
func (c checker) checkCertificates(w store.Written) error {
	switch o := w.After.(type) {
	case *model.ServiceSecret:
		if w.Before == nil && !c.rules.Restoring {
			return c.checkAttached(o.Service, o.Secret, "")
		}
	case *model.Service:
		return c.checkService(o, w.Before)
	case *model.Upstream:
		was, _ := w.Before.(*model.Upstream)
		if was == nil || was.ValidationCACertificate != o.ValidationCACertificate {
			if err := c.checkNamed(o.Key(), upstreamCAField, o.ValidationCACertificate, notAuthorities); err != nil {
				return err
			}
		}
		if was == nil || was.ClientCertificate != o.ClientCertificate {
			return c.checkNamed(o.Key(), upstreamPairField, o.ClientCertificate, notPair)
		}
	case *model.Secret:
		return c.checkSecret(o, w.Before)
	}
	return nil
}

func (c checker) checkService(s *model.Service, before model.Object) error {
	was, _ := before.(*model.Service)
	if was == nil || was.ClientCACertificate != s.ClientCACertificate {
		if err := c.checkNamed(s.Key(), clientCAField, s.ClientCACertificate, notAuthorities); err != nil {
			return err
		}
	}
	if was == nil || strings.EqualFold(was.FQDN, s.FQDN) {
		return nil // the links of a new service are new
	}
	links, err := c.reader.List(store.Query{Kind: model.KindServiceSecret, To: []model.Key{s.Key()}})
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := c.checkAttached(s.Name, l.Key().Attached().Name(), "fqdn"); err != nil {
			return err
		}
	}
	return nil
}

// checkAttached refuses a certificate that cannot be served for the host of a
// service. field is the changed field; empty for the link.
func (c checker) checkAttached(service, secret, field string) error {
	svc, found, err := find[*model.Service](c.reader, model.ServiceKey(service))
	if !found {
		return err
	}
	s, found, err := find[*model.Secret](c.reader, model.SecretKey(secret))
	if !found {
		return err
	}
	why := s.NotFor(svc.FQDN)
	if why == "" {
		return nil
	}
	e := &model.Error{
		Kind: model.Unworkable, Path: model.ServiceSecretKey(service, secret).Path(),
		Message: fmt.Sprintf("secret %q %s, and the fqdn of service %q is %s", secret, why, service, svc.FQDN),
		Hint:    "attach a secret whose certificate is for this host",
	}
	if field != "" {
		e.Path, e.Hint = svc.Key().Path(), "detach the secret first, or replace its certificate with one for the new host"
		e.Fields = []model.FieldError{{Field: field, Message: fmt.Sprintf("secret %q is attached, which %s", secret, why)}}
	}
	return e
}

func notAuthorities(s *model.Secret) string { return s.NotAuthorities() }

func notPair(s *model.Secret) string {
	switch {
	case s.Cert == "":
		return "has no certificate"
	case s.PrivateKey == "":
		return "has no key"
	}
	return ""
}

// checkNamed refuses the name of a secret that does not fit the field.
func (c checker) checkNamed(of model.Key, field, name string, wrong func(*model.Secret) string) error {
	if name == "" {
		return nil
	}
	s, found, err := find[*model.Secret](c.reader, model.SecretKey(name))
	if !found {
		return err
	}
	return wrongSecret(of.Path(), field, of, field, s, wrong)
}

// wrongSecret refuses a write with a path, for the field sent, because an object
// names a secret that does not fit.
func wrongSecret(
	path, sent string, of model.Key, names string, s *model.Secret, wrong func(*model.Secret) string,
) error {
	why := wrong(s)
	if why == "" {
		return nil
	}
	message := fmt.Sprintf("names secret %q, which %s", s.Name, why)
	long := fmt.Sprintf("%s of %s %s", names, of.Path(), message)
	if sent != names {
		message = long
	}
	return &model.Error{
		Kind: model.Unworkable, Path: path, Message: path + " cannot become a working configuration: " + long,
		Hint: map[bool]string{
			true:  "upload a certificate with its key to the secret",
			false: "upload certificates of authorities to the secret",
		}[names == upstreamPairField],
		Fields: []model.FieldError{{Field: sent, Message: message}},
	}
}

// checkSecret refuses a certificate that is expired, or that an object naming the secret
// cannot use.
func (c checker) checkSecret(s *model.Secret, before model.Object) error {
	was, _ := before.(*model.Secret)
	if was != nil && was.Cert == s.Cert && was.IsPair() == s.IsPair() {
		return nil
	}
	if end, ended := hasEnded(s, c.rules.now()); ended && !c.rules.Restoring {
		return &model.Error{
			Kind: model.Unworkable, Path: s.Key().Path(),
			Message: fmt.Sprintf("%s cannot become a working configuration: its certificate expired on %s", s.Key().Path(),
				day(end)),
			Hint:   "send a valid certificate",
			Fields: []model.FieldError{{Field: certField, Message: "expired on " + day(end)}},
		}
	}
	if was == nil {
		return nil // objects that name it are new too
	}
	for _, kind := range []model.Kind{model.KindUpstream, model.KindService} {
		users, err := c.reader.List(store.Query{Kind: kind, To: []model.Key{s.Key()}})
		if err != nil {
			return err
		}
		for _, u := range users {
			if err := checkUse(u, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkUse refuses a secret that an object names and cannot use.
func checkUse(user model.Object, s *model.Secret) error {
	check := func(field, name string, wrong func(*model.Secret) string) error {
		if name != s.Name {
			return nil
		}
		return wrongSecret(s.Key().Path(), certField, user.Key(), field, s, wrong)
	}
	switch o := user.(type) {
	case *model.Service:
		return check(clientCAField, o.ClientCACertificate, notAuthorities)
	case *model.Upstream:
		if err := check(upstreamCAField, o.ValidationCACertificate, notAuthorities); err != nil {
			return err
		}
		return check(upstreamPairField, o.ClientCertificate, notPair)
	}
	return nil
}

// hasEnded reports whether a host's certificate, or every certificate in a set of
// authorities, has expired, and when.
func hasEnded(s *model.Secret, now time.Time) (end time.Time, ended bool) {
	for _, cert := range s.Certificates() {
		if cert.NotAfter.After(end) {
			end = cert.NotAfter
		}
		if s.IsPair() || !cert.IsCA {
			break
		}
	}
	return end, !end.IsZero() && end.Before(now)
}

// find reads an object. The object may have been deleted since.
func find[T model.Object](r store.Reader, key model.Key) (obj T, found bool, err error) {
	obj, err = store.Get[T](r, key)
	if model.IsKind(err, model.NotFound) {
		return obj, false, nil
	}
	return obj, err == nil, err
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }
