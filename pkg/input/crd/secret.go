package crd

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// The entries of a Secret in addition to those of Kubernetes.
const (
	authoritiesEntry = "ca.crt"
	valueEntry       = "value"
)

// Unseal opens the sealed texts in a document or, if open is nil, removes them: a text that one Gatehouse has sealed is
// useless for another. open receives the place that a text was sealed for.
func Unseal(doc *document.Document, open func(sealed, place string) (string, error)) error {
	for _, item := range doc.Items {
		confidential, ok := item.Object.(model.Confidential)
		if !ok {
			continue
		}
		if open != nil {
			err := confidential.MapSealed(func(text, place string) (string, error) {
				if !model.IsSealed(text) {
					return text, nil
				}
				return open(text, place)
			})
			if err != nil {
				return err
			}
			continue
		}
		item.Object = confidential.Redact()
		if s, ok := item.Object.(*model.Secret); ok {
			s.Cert, s.PrivateKey, s.Value = "", "", ""
		}
	}
	return nil
}

// secret makes a Secret with the contents of a secret.
func (e *exporter) secret(s *model.Secret) *corev1.Secret {
	out := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: e.meta(objectName(s.Name), s.Name, s.Tags),
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{},
	}
	if s.SNI != "" {
		annotate(&out.ObjectMeta, gatewayv1.AnnotationSNI, s.SNI)
	}
	for _, text := range []string{s.PrivateKey, s.Value} {
		if text == model.Redacted || model.IsSealed(text) {
			e.add("%s: its contents are not in plain text in the document: give the key with --secret-key-file, "+
				"or omit --secret-values", s.Key().Path())
		}
	}
	switch {
	case s.Cert != "" && s.PrivateKey != "":
		out.Type = corev1.SecretTypeTLS
		out.Data[corev1.TLSCertKey], out.Data[corev1.TLSPrivateKeyKey] = []byte(s.Cert), []byte(s.PrivateKey)
	case s.Cert != "":
		out.Data[authoritiesEntry] = []byte(s.Cert)
	case s.PrivateKey != "":
		out.Data[corev1.TLSPrivateKeyKey] = []byte(s.PrivateKey)
	case s.Value != "":
		out.Data[valueEntry] = []byte(s.Value)
	case s.Type != "" && s.SNI == "":
		annotate(&out.ObjectMeta, gatewayv1.AnnotationSecretType, s.Type)
	}
	return out
}

// inlineSecret makes the Secret of a text in the configuration of a filter, and returns its name. what distinguishes it
// from other texts there.
func (e *exporter) inlineSecret(filter, what, text string) string {
	name := objectName(filter + "." + what)
	e.reserve(e.secrets, name, model.FilterKey(filter))
	if !e.options.Values {
		e.todo = append(e.todo, e.howToMake(filter+"."+what))
		return name
	}
	if text == model.Redacted || model.IsSealed(text) {
		e.add("/filter/%s: its %s is not in plain text in the document: give the key with --secret-key-file, "+
			"or omit --secret-values", filter, what)
	}
	e.out.Secrets = append(e.out.Secrets, &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.options.Namespace},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{valueEntry: []byte(text)},
	})
	return name
}

// readSecret reads a Secret, and its content only if values is set.
func readSecret(o *corev1.Secret, name string, values bool) (s *model.Secret, fault string) {
	s = &model.Secret{
		Name: name, Tags: model.NewTags(tagsOf(o.ObjectMeta)), SNI: o.Annotations[gatewayv1.AnnotationSNI],
		Type: o.Annotations[gatewayv1.AnnotationSecretType],
	}
	data := map[string]string{}
	for key, value := range o.Data {
		data[key] = string(value)
	}
	for key, value := range o.StringData {
		data[key] = value
	}
	cert, key, authorities := data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], data[authoritiesEntry]
	switch {
	case cert != "" || key != "" || s.SNI != "":
		s.Type, s.Cert, s.PrivateKey = model.SecretTLS, cert, key
	case authorities != "":
		s.Type, s.Cert = model.SecretTLS, authorities
	case len(data) == 1:
		for _, value := range data {
			s.Type, s.Value = model.SecretGeneric, value
		}
		// echo and editors leave a line feed at the end; the cluster mode ignores it too.
		if _, own := data[valueEntry]; !own {
			s.Value = strings.TrimSuffix(s.Value, "\n")
		}
	case len(data) > 1:
		return nil, "has several entries and none of tls.crt, tls.key and ca.crt"
	}
	if !values {
		s.Cert, s.PrivateKey, s.Value = "", "", ""
	}
	return s, ""
}

// isForPrograms reports whether a Secret is one of Kubernetes' own or helm's.
func isForPrograms(t corev1.SecretType) bool {
	return !slices.Contains([]corev1.SecretType{"", corev1.SecretTypeOpaque, corev1.SecretTypeTLS}, t)
}
