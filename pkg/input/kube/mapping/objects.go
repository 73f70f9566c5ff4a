package mapping

import (
	"reflect"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// ReadBackend sets the fields of an upstream that a backend sets. secret returns the name of the secret for a Secret
// that a field names; the path begins with at.
func ReadBackend(
	b *gatewayv1.Backend, at string, u *model.Upstream, secret func(path string, ref gatewayv1.SecretReference) string,
) {
	reader{secret: secret}.read(at, reflect.ValueOf(b).Elem(), reflect.ValueOf(u).Elem())
}

// BackendField returns the field of a backend that a field of its upstream comes from; empty means that it has none.
func BackendField(name string) string {
	return paths(reflect.TypeFor[gatewayv1.Backend](), reflect.TypeFor[model.Upstream]())[strings.ToLower(name)]
}

// WriteBackend sets the fields of a backend that are not the defaults. secret refers to the Secret for a secret.
func WriteBackend(u *model.Upstream, b *gatewayv1.Backend, secret func(name string) *gatewayv1.SecretReference) {
	secretRef(secret).write(reflect.ValueOf(u).Elem(), reflect.ValueOf(model.NewUpstream()).Elem(),
		reflect.ValueOf(b).Elem())
}

// ReadHost sets the fields of a service that a GatewayHost sets, with the same secret as ReadBackend.
func ReadHost(
	h *gatewayv1.GatewayHostSpec, s *model.Service, secret func(path string, ref gatewayv1.SecretReference) string,
) {
	reader{secret: secret}.read("spec", reflect.ValueOf(h).Elem(), reflect.ValueOf(s).Elem())
}

// HostField returns the field of a GatewayHost that a field of its service comes from.
func HostField(name string) string {
	return "spec" + paths(reflect.TypeFor[gatewayv1.GatewayHostSpec](),
		reflect.TypeFor[model.Service]())[strings.ToLower(name)]
}

// WriteHost sets the fields of a GatewayHost that are not the defaults, with the same secret as WriteBackend.
func WriteHost(s *model.Service, h *gatewayv1.GatewayHostSpec, secret func(name string) *gatewayv1.SecretReference) {
	secretRef(secret).write(reflect.ValueOf(s).Elem(), reflect.ValueOf(model.NewService()).Elem(),
		reflect.ValueOf(h).Elem())
}

// Protocol returns the protocol for the appProtocol of a Service's port: Kubernetes' own names, and those of IANA and
// others that are in use. Any other value is http.
func Protocol(appProtocol *string) string {
	if appProtocol == nil {
		return "http"
	}
	switch strings.ToLower(*appProtocol) {
	case "kubernetes.io/h2c", "h2c", "http2", "grpc":
		return "h2c"
	case "https", "tls", "kubernetes.io/wss", "wss":
		return "tls"
	case "h2", "grpcs":
		return "h2"
	}
	return "http"
}
