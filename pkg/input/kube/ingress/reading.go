package ingress

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// prefix begins the annotations of ingress-nginx.
const prefix = "nginx.ingress.kubernetes.io/"

// reading is an Ingress while its annotations are read.
type reading struct {
	*source
	all  *translation
	used map[string]bool
	made *settings
}

func (t *translation) reading(s *source) *reading {
	return &reading{source: s, all: t, used: map[string]bool{}}
}

// value returns an annotation of ingress-nginx, which then counts as read.
func (r *reading) value(name string) (string, bool) {
	v, ok := r.Annotations[prefix+name]
	r.used[prefix+name] = true
	return strings.TrimSpace(v), ok
}

// is reports whether an annotation is true.
func (r *reading) is(name string) bool {
	v, _ := r.value(name)
	return v == "true"
}

// note records what an annotation has no equivalent for; an empty one means the Ingress.
func (r *reading) note(annotation, format string, args ...any) {
	r.record(Note{}, annotation, fmt.Sprintf(format, args...))
}

// closes records that, for what restricts who may send requests.
func (r *reading) closes(annotation, format string, args ...any) {
	r.made.closed = true
	r.record(Note{Closed: true}, annotation, fmt.Sprintf(format, args...))
}

func (r *reading) record(n Note, annotation, message string) {
	n.Line, n.Ingress, n.Message = r.line, r.String(), message
	if annotation != "" {
		n.Line, n.Message = r.lines[annotation], annotation+": "+message
	}
	if !slices.Contains(r.all.notes, n) {
		r.all.notes = append(r.all.notes, n)
	}
}

// filter makes a RouteFilter of the Ingress, and returns its name.
func (r *reading) filter(what, kind string, config map[string]any) string {
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // it consists of text and numbers
	}
	f := &gatewayv1.RouteFilter{}
	f.APIVersion, f.Kind = gatewayv1.GroupVersion().String(), gatewayv1.KindRouteFilter
	f.Namespace, f.Name = r.Namespace, r.Name+"-"+what
	f.Spec.Type, f.Spec.RouteFilterConfig.Config = gatewayv1.RouteFilterType(kind), string(text)
	r.all.filters[f.Namespace+"/"+f.Name] = f
	return f.Name
}

// rest notes the annotations that nothing has read.
func (r *reading) rest() {
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		short, ours := strings.CutPrefix(name, prefix)
		switch why, harmless := needless()[short]; {
		case r.used[name]:
		case ours && harmless:
			r.record(Note{Needless: true}, name, "not needed: "+why)
		case ours:
			r.note(name, "has no equivalent")
		case strings.HasPrefix(name, "external-dns.alpha.kubernetes.io/"):
			r.note(name, "ExternalDNS does not read GatewayHosts: keep the name in another way")
		}
	}
}

// needless are annotations of nginx's own machinery, which change no answer.
func needless() map[string]string {
	const buffers, log = "Envoy streams requests and answers, and has bounds of its own", "see the access log and tracing of the gateway"
	return map[string]string{
		"proxy-buffering": buffers, "proxy-buffer-size": buffers, "proxy-buffers-number": buffers, "proxy-busy-buffers-size": buffers,
		"proxy-max-temp-file-size": buffers, "proxy-request-buffering": buffers, "client-body-buffer-size": buffers,
		"proxy-http-version": "HTTP/1.1 is the default, and backend-protocol chooses HTTP/2", "connection-proxy-header": "connections to Services are kept",
		"enable-access-log": log, "enable-rewrite-log": log, "enable-opentelemetry": log, "opentelemetry-trust-incoming-span": log,
		"ssl-ciphers": "the gateway has its own, current ones", "ssl-prefer-server-ciphers": "the gateway has its own, current ones",
		"http2-push-preload": "browsers no longer support it", "service-upstream": "requests go to ready endpoints",
		"websocket-services": "websockets are allowed", "proxy-redirect-from": "Location is passed on", "proxy-redirect-to": "Location is passed on",
	}
}
