package certificates

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Soon is how long before its expiry a certificate has the condition
// model.CertificateExpires.
const Soon = 30 * 24 * time.Hour

// Set is what the configuration contains about certificates. It is for one goroutine.
// Use New.
type Set struct {
	secrets map[string]*model.Secret
	// services are those that need a certificate; attached has the secrets of services.
	services map[string]*model.Service
	fqdn     map[string]string
	attached map[string]map[string]bool
	// automatic are the certificates that the gateway has ordered, by service.
	automatic map[model.Key]*model.Secret
	// names are the secrets that services and upstreams name, users the reverse of both.
	names map[model.Key][]model.Key
	users map[string]map[model.Key]bool
}

// New returns an empty set.
func New() *Set {
	s := &Set{}
	s.clear()
	return s
}

func (s *Set) clear() {
	*s = Set{
		secrets: map[string]*model.Secret{}, services: map[string]*model.Service{}, fqdn: map[string]string{},
		attached: map[string]map[string]bool{}, automatic: map[model.Key]*model.Secret{},
		names: map[model.Key][]model.Key{}, users: map[string]map[model.Key]bool{},
	}
}

// Apply updates the set. It reports whether the set has changed.
func (s *Set) Apply(change model.Change) (changed bool) {
	if change.Full {
		s.clear()
		changed = true
	}
	for _, e := range change.Entries {
		changed = s.apply(e) || changed
	}
	s.applyAutomatic(change.Automatic)
	return changed || len(change.Automatic) > 0
}

func (s *Set) apply(e model.Entry) bool {
	switch e.Key.Kind {
	case model.KindSecret:
		return s.applySecret(e)
	case model.KindServiceSecret:
		service, secret := e.Key.Owner(), e.Key.Attached().Name()
		if e.Object == nil {
			delete(s.attached[service.Name()], secret)
			s.unuse(secret, service)
			return true
		}
		if s.attached[service.Name()] == nil {
			s.attached[service.Name()] = map[string]bool{}
		}
		s.attached[service.Name()][secret] = true
		s.use(secret, service)
		return true
	case model.KindService:
		return s.applyService(e)
	case model.KindUpstream:
		return s.name(e)
	}
	return false
}

func (s *Set) applySecret(e model.Entry) bool {
	name := e.Key.Name()
	_, had := s.secrets[name]
	delete(s.secrets, name)
	if secret, ok := e.Object.(*model.Secret); ok && secret.Cert != "" {
		s.secrets[name] = secret
		return true
	}
	return had
}

func (s *Set) applyService(e model.Entry) bool {
	name := e.Key.Name()
	_, needed := s.services[name]
	delete(s.services, name)
	delete(s.fqdn, name)
	changed := s.name(e) || needed || len(s.attached[name]) > 0
	if svc, ok := e.Object.(*model.Service); ok {
		s.fqdn[name] = svc.FQDN
		if svc.NeedsCertificate() != "" {
			s.services[name] = svc
			return true
		}
	}
	return changed
}

// name records the secrets that an object names.
func (s *Set) name(e model.Entry) bool {
	had := s.names[e.Key]
	delete(s.names, e.Key)
	for _, secret := range had {
		s.unuse(secret.Name(), e.Key)
	}
	namer, ok := e.Object.(model.Namer)
	if !ok {
		return len(had) > 0
	}
	has := namer.Names()
	if len(has) > 0 {
		s.names[e.Key] = has
	}
	for _, secret := range has {
		s.use(secret.Name(), e.Key)
	}
	return len(had)+len(has) > 0
}

func (s *Set) use(secret string, user model.Key) {
	if s.users[secret] == nil {
		s.users[secret] = map[model.Key]bool{}
	}
	s.users[secret][user] = true
}

// unuse removes a user of a secret, unless it also uses the secret in the other way.
func (s *Set) unuse(secret string, user model.Key) {
	if s.attached[user.Name()][secret] && user.Kind == model.KindService ||
		slices.Contains(s.names[user], model.SecretKey(secret)) {
		return
	}
	if delete(s.users[secret], user); len(s.users[secret]) == 0 {
		delete(s.users, secret)
	}
}

// Ends returns when the certificate of each secret expires, by the name of the secret.
func (s *Set) Ends() map[string]time.Time {
	ends := make(map[string]time.Time, len(s.secrets))
	for name, secret := range s.secrets {
		if secret.NotAfter != nil {
			ends[name] = secret.NotAfter.Time
		}
	}
	for _, secret := range s.automatic {
		if secret != nil {
			ends[secret.Name] = secret.NotAfter.Time
		}
	}
	return ends
}

// Conditions returns the conditions at a time, and when they next change by themselves;
// the zero time means never.
func (s *Set) Conditions(now time.Time) (list []model.Condition, until time.Time) {
	list, until = s.automaticConditions(now)
	for _, name := range slices.Sorted(maps.Keys(s.secrets)) {
		secret := s.secrets[name]
		if secret.NotAfter == nil {
			continue
		}
		next := secret.NotAfter.Add(-Soon)
		if !now.Before(next) {
			list = append(list, s.ending(secret, now)...)
			next = secret.NotAfter.Time
		}
		if now.Before(next) && (until.IsZero() || next.Before(until)) {
			until = next
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.attached)) {
		for _, secret := range slices.Sorted(maps.Keys(s.attached[name])) {
			if why := s.notFor(secret, name); why != "" {
				list = append(list, model.Condition{
					Key: model.ServiceSecretKey(name, secret), Code: model.CertificateNotForHost,
					Message: fmt.Sprintf("secret %q %s, and the fqdn of service %q is %s: it is not shown for this service", secret,
						why, name, s.fqdn[name]),
				})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		if !s.hasPair(name) && !s.isAutomatic(name) { // that has a condition of its own
			list = append(list, model.Condition{
				Key: model.ServiceKey(name), Code: model.NoCertificate, Message: s.services[name].NeedsCertificate(),
			})
		}
	}
	return list, until
}

func (s *Set) notFor(secret, service string) string {
	fqdn, known := s.fqdn[service]
	if s.secrets[secret] == nil || !known {
		return ""
	}
	return s.secrets[secret].NotFor(fqdn)
}

// hasPair reports whether a service has a certificate and key for its host.
func (s *Set) hasPair(service string) bool {
	for name := range s.attached[service] {
		if secret := s.secrets[name]; secret != nil && secret.IsPair() && secret.NotFor(s.fqdn[service]) == "" {
			return true
		}
	}
	return false
}

func (s *Set) isAutomatic(service string) bool {
	_, is := s.automatic[model.ServiceKey(service)]
	return is
}

// ending returns the conditions of a certificate that expires soon or has expired: those
// of its secret and of the objects that use it.
func (s *Set) ending(secret *model.Secret, now time.Time) []model.Condition {
	users := slices.SortedFunc(maps.Keys(s.users[secret.Name]), comparePaths)
	end := secret.NotAfter.UTC().Format(time.RFC3339)
	code, what := model.CertificateExpires, "ends on "+end
	if !now.Before(secret.NotAfter.Time) {
		code, what = model.CertificateExpired, "expired on "+end
	}
	list := []model.Condition{{
		Key: secret.Key(), Code: code,
		Message: "the certificate " + what + usedBy(users) + "; upload a new one",
	}}
	for _, user := range users {
		list = append(list, model.Condition{
			Key: user, Code: code, Message: fmt.Sprintf("the certificate of secret %q %s; upload a new one to %s", secret.Name,
				what, secret.Key().Path()),
		})
	}
	return list
}

func comparePaths(a, b model.Key) int { return cmp.Compare(a.Path(), b.Path()) }

// usedBy names a few of the objects that use a secret.
func usedBy(users []model.Key) string {
	const most = 5
	if len(users) == 0 {
		return "; nothing uses it"
	}
	paths := make([]string, 0, most)
	for _, u := range users[:min(most, len(users))] {
		paths = append(paths, u.Path())
	}
	text := ", and " + strings.Join(paths, ", ")
	if more := len(users) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + map[bool]string{true: " uses it", false: " use it"}[len(users) == 1]
}
