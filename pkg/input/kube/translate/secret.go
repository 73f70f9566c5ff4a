package translate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// secretState is what is known of a Secret.
type secretState struct {
	// object is nil if there is none.
	object *corev1.Secret
	// unreadable says why it cannot be read; empty means that it can.
	unreadable string
	// forms are its forms in the store, by purpose, as far as they were requested.
	forms map[purpose]secretForm
}

func (s *secretState) same(o *secretState) bool {
	if s.object == nil || o.object == nil {
		return s.object == o.object && s.unreadable == o.unreadable
	}
	return reflect.DeepEqual(s.object.Data, o.object.Data) &&
		s.object.Annotations[gatewayv1.AnnotationSNI] == o.object.Annotations[gatewayv1.AnnotationSNI]
}

// purpose is what a Secret is used for.
type purpose int

const (
	forPair        purpose = iota // tls.crt and tls.key
	forValue                      // its only entry
	forAuthorities                // ca.crt
)

// secretForm is a Secret in the store.
type secretForm struct {
	secret model.Secret // without its name
	// fault says why the Secret does not fit its purpose; it follows the name in a sentence. Empty means that it
	// fits. With a fault, secret is empty.
	fault string
}

// secret returns the name of the store's secret for a Secret and a purpose, and whether it can be used. An
// unusable secret is empty: what needs it stays closed.
func (s *scope) secret(path string, ref Ref, p purpose) (name string, usable bool) {
	if len(ref.Name) > maxName || !isNamed(Ref{Namespace: s.of.Namespace, Name: ref.Name}) {
		s.problem(path, RefNotFound, "%q is not the name of a Secret", ref.Name)
		return s.emptySecret(path, s.of.Namespace, hash(ref.Name), "none"), false
	}
	if !s.permits(path, ref) {
		return s.emptySecret(path, s.of.Namespace, hash(ref.Namespace, ref.Name), "not-permitted"), false
	}
	name = objectName(ref.Namespace, ref.Name)
	if p == forAuthorities {
		name = ownName(ref.Namespace, ref.Name, "ca")
	}
	form := secretForm{}
	if state := s.readSecret(path, ref); state != nil {
		if form = state.form(name, p); form.fault != "" {
			s.problem(path, Invalid, "%s %s", ref, form.fault)
		}
		usable = form.fault == ""
	}
	secret := form.secret
	secret.Name = name
	s.make(&secret, path)
	return name, usable
}

// readSecret returns a Secret that the object may name; nil, with a problem, if its content is not known.
func (s *scope) readSecret(path string, ref Ref) *secretState {
	s.use(ref)
	switch state := s.world.secrets[ref]; {
	case state == nil:
		s.problem(path, RefNotFound, "%s has not been read yet", ref)
	case state.unreadable != "":
		s.problem(path, RefNotFound, "%s cannot be read: %s", ref, state.unreadable)
	case state.object == nil:
		s.notFound(path, ref)
	default:
		return state
	}
	return nil
}

// emptySecret makes a secret that closes what needs it.
func (s *scope) emptySecret(path, namespace, name, what string) string {
	name = ownName(namespace, name, what)
	s.make(&model.Secret{Name: name}, path)
	return name
}

// form returns the form of the Secret for a purpose. A pair and a value are the same object of the store: its
// content depends on the Secret alone.
func (s *secretState) form(name string, p purpose) secretForm {
	form, known := s.forms[p]
	if known {
		return form
	}
	data := s.object.Data
	_, hasCert := data[corev1.TLSCertKey]
	_, hasKey := data[corev1.TLSPrivateKeyKey]
	isPair := hasCert && hasKey
	switch {
	case p == forAuthorities:
		form = authoritiesOf(data)
	case isPair:
		form.secret = model.Secret{
			Type: model.SecretTLS, Cert: string(data[corev1.TLSCertKey]), PrivateKey: string(data[corev1.TLSPrivateKeyKey]),
			SNI: s.object.Annotations[gatewayv1.AnnotationSNI],
		}
	case len(data) == 1:
		for _, value := range data {
			form.secret = model.Secret{Type: model.SecretGeneric, Value: withoutLineFeed(string(value))}
		}
	}
	if form.fault == "" {
		form.fault = faultOf(name, form.secret)
	}
	switch {
	case form.fault != "":
		form.secret = model.Secret{}
	case p == forPair && !isPair:
		form.fault = "has no certificate with its key: it needs the entries tls.crt and tls.key"
	case p == forValue && isPair:
		form.fault = "has a certificate; a secret with a single entry is needed"
	case p == forValue && len(data) != 1:
		form.fault = fmt.Sprintf("must have a single entry, and has %d", len(data))
	case p == forValue && form.secret.Value == "":
		form.fault = "is empty"
	}
	if s.forms == nil {
		s.forms = map[purpose]secretForm{}
	}
	s.forms[p] = form
	return form
}

// authoritiesOf reads certificate authorities from ca.crt, or from the only entry.
func authoritiesOf(data map[string][]byte) (form secretForm) {
	text, found := data[corev1.ServiceAccountRootCAKey]
	if !found && len(data) == 1 {
		for _, text = range data {
			found = true
		}
	}
	if !found {
		form.fault = "has no certificate authorities: it needs the entry ca.crt"
		return form
	}
	form.secret = model.Secret{Type: model.SecretTLS, Cert: string(text)}
	form.fault = form.secret.NotAuthorities()
	return form
}

// withoutLineFeed removes the line feed at the end of a text, as a file has it. Bytes that are not text stay as
// they are.
func withoutLineFeed(value string) string {
	text := strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return value
	}
	return text
}

// faultOf says why a store would refuse a secret; the text follows its name in a sentence.
func faultOf(name string, secret model.Secret) string {
	secret.Name = name
	fields := secret.Validate()
	if len(fields) == 0 {
		fields = refusedBySealing(&secret)
	}
	for _, f := range fields {
		entry := map[string]string{
			"Secret_cert": "an entry tls.crt that ", "Secret_key": "an entry tls.key that ", "Secret_value": "a value that ",
			"Secret_sni": "an annotation " + gatewayv1.AnnotationSNI + ": ",
		}[f.Field]
		return "has " + entry + f.Message
	}
	return ""
}

// refusedBySealing returns the errors of a store that seals an object. The object must be a copy.
func refusedBySealing(obj model.Confidential) []model.FieldError {
	err := obj.Seal(rehearsal{}, nil)
	if refused, ok := errors.AsType[*model.Error](err); ok {
		return refused.Fields
	}
	if err != nil {
		return []model.FieldError{{Message: err.Error()}}
	}
	return nil
}

// rehearsal seals nothing: it remembers the texts.
type rehearsal map[string]string

// Seal implements model.Sealer.
func (r rehearsal) Seal(plain, place string) (string, error) {
	sealed := model.SealedPrefix + hash(place)
	r[sealed] = plain
	return sealed, nil
}

// Unseal implements model.Sealer.
func (r rehearsal) Unseal(sealed, _ string) (string, error) {
	plain, ok := r[sealed]
	if !ok {
		return "", &model.Error{Kind: model.Invalid, Message: "was not sealed here"}
	}
	return plain, nil
}
