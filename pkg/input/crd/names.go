package crd

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// objectName returns the name in Kubernetes for a name in the REST API: the same or, if
// Kubernetes does not allow it, a similar one with a hash.
func objectName(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	return hashed(name, validation.DNS1123SubdomainMaxLength, true)
}

// serviceName does the same for Services, whose names have no dots.
func serviceName(name string) string {
	if len(validation.IsDNS1035Label(name)) == 0 {
		return name
	}
	like := hashed(name, validation.DNS1035LabelMaxLength-2, false)
	if like[0] >= 'a' && like[0] <= 'z' {
		return like
	}
	return "u-" + like
}

// hashed returns a name that Kubernetes allows, of at most limit characters, made from another
// one.
func hashed(name string, limit int, dots bool) string {
	sum := sha256.Sum256([]byte(name))
	suffix := hex.EncodeToString(sum[:])[:8]
	like := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == '.' && dots:
			return r
		}
		return '-'
	}, name)
	labels := strings.FieldsFunc(like, func(r rune) bool { return r == '.' })
	for i, label := range labels {
		labels[i] = strings.Trim(label, "-")
	}
	like = strings.Trim(strings.ReplaceAll(strings.Join(labels, "."), "..", "."), ".-")
	if over := len(like) + 1 + len(suffix) - limit; over > 0 {
		like = strings.TrimRight(like[:len(like)-over], ".-")
	}
	if like == "" {
		return suffix
	}
	return like + "-" + suffix
}

// meta returns the metadata of an object with this name in the REST API.
func (e *exporter) meta(kubernetes, name string, tags []string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: kubernetes, Namespace: e.options.Namespace}
	if kubernetes != name {
		annotate(&m, gatewayv1.AnnotationName, name)
	}
	if len(tags) > 0 {
		annotate(&m, gatewayv1.AnnotationTags, strings.Join(tags, " "))
	}
	return m
}

func annotate(m *metav1.ObjectMeta, key, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[key] = value
}

// nameOf returns the name of an object in the REST API. With several namespaces, it begins with
// that of the object.
func nameOf(m metav1.ObjectMeta, several bool) string {
	if name := m.Annotations[gatewayv1.AnnotationName]; name != "" {
		return name
	}
	if several {
		return m.Namespace + "." + m.Name
	}
	return m.Name
}

func tagsOf(m metav1.ObjectMeta) []string {
	return strings.Fields(m.Annotations[gatewayv1.AnnotationTags])
}
