package ingress

import (
	"net/url"
	"strconv"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// protocol reads how the gateway speaks to Services.
func (r *reading) protocol() {
	v, ok := r.value("backend-protocol")
	of := map[string]string{"HTTP": "http", "HTTPS": "tls", "GRPC": "h2c", "GRPCS": "h2"}
	switch p := of[strings.ToUpper(v)]; {
	case !ok || strings.EqualFold(v, "AUTO_HTTP"):
	case p == "":
		r.closes(prefix+"backend-protocol", "%s has no equivalent", v)
	default:
		r.made.backend.Protocol = p
	}
}

// verify reads how the certificate of a Service is verified. By default nginx does not.
func (r *reading) verify() {
	verify, _ := r.value("proxy-ssl-verify")
	secret, _ := r.value("proxy-ssl-secret")
	name, _ := r.value("proxy-ssl-name")
	r.value("proxy-ssl-server-name") // the name is always sent
	if p := r.made.backend.Protocol; p != "tls" && p != "h2" {
		return
	}
	t := &gatewayv1.BackendTLS{SubjectName: name}
	r.made.backend.TLS = t
	if secret != "" {
		namespace, object, found := strings.Cut(secret, "/")
		if !found {
			namespace, object = "", secret
		}
		ref := &gatewayv1.SecretReference{Name: gatewayv1.ObjectName(object)}
		if namespace != r.Namespace {
			ref.Namespace = gatewayv1.Namespace(namespace)
		}
		t.ClientSecret = ref
		if verify == "on" {
			t.CASecret = ref
		}
	}
	if verify != "on" {
		t.Insecure = true
		r.note(prefix+"backend-protocol", "nginx does not verify the certificate of the Service, so tls.insecure is set: remove it, and name the authority in caSecret")
	}
}

// external reads the server that is asked for each request.
func (r *reading) external() {
	target, ok := r.value("auth-url")
	headers, _ := r.value("auth-response-headers")
	if _, signin := r.value("auth-signin"); signin && ok {
		r.note(prefix+"auth-signin", "users without a session get the answer of the server and no redirect: let it answer browsers with 302, or use http_filter_oidc")
	}
	r.value("auth-signin-redirect-param")
	if !ok {
		return
	}
	const name = prefix + "auth-url"
	u, err := url.Parse(target)
	if err != nil || strings.Contains(target, "$") || u.Scheme != "http" {
		r.closes(name, "only a URL http://SERVICE.NAMESPACE.svc.cluster.local without variables is translated: write an http_filter_extauthz")
		return
	}
	service, namespace, _ := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(u.Hostname(), ".cluster.local"), ".svc"), ".")
	if namespace != "" && namespace != r.Namespace || service == u.Hostname() {
		r.closes(name, "the server must be a Service of namespace %s: write an http_filter_extauthz for an ExternalName Service", r.Namespace)
		return
	}
	port := 80
	if n, err := strconv.Atoi(u.Port()); err == nil {
		port = n
	}
	config := map[string]any{"upstream": service + "." + strconv.Itoa(port), "path": "/" + strings.TrimPrefix(u.RequestURI(), "/"), "allow_status": "2xx"}
	if list := words(headers); len(list) > 0 {
		config["upstream_headers"] = list
	}
	r.add("auth", "http_filter_extauthz", config)
}

// passwords reads users with passwords, whose hashes Envoy cannot have.
func (r *reading) passwords() {
	for _, name := range []string{"auth-secret", "auth-secret-type", "auth-realm"} {
		r.value(name)
	}
	if v, ok := r.value("auth-type"); ok {
		r.closes(prefix+"auth-type", "the hashes of %s authentication cannot be used: write an http_filter_basicauth with the passwords, for its routes", v)
	}
	if v, ok := r.value("satisfy"); ok && v != "all" {
		r.closes(prefix+"satisfy", "%q has no equivalent", v)
	}
	if _, ok := r.value("auth-snippet"); ok {
		r.closes(prefix+"auth-snippet", "code of nginx cannot be translated")
	}
}

// clientCertificates reads whether clients need a certificate.
func (r *reading) clientCertificates() {
	secret, ok := r.value("auth-tls-secret")
	verify, set := r.value("auth-tls-verify-client")
	r.value("auth-tls-verify-depth")
	if _, pass := r.value("auth-tls-pass-certificate-to-upstream"); pass {
		r.note(prefix+"auth-tls-pass-certificate-to-upstream", "backends get X-Forwarded-Client-Cert instead")
	}
	switch {
	case !ok || verify == "off":
	case set && verify != "on":
		r.closes(prefix+"auth-tls-verify-client", "%q has no equivalent: a client certificate is required or not", verify)
	default:
		if namespace, name, found := strings.Cut(secret, "/"); found {
			if secret = name; namespace != r.Namespace {
				r.closes(prefix+"auth-tls-secret", "the Secret must be in namespace %s, or needs a ReferenceGrant and clientCASecret.namespace", r.Namespace)
			}
		}
		r.made.clientCA = secret
	}
}

// sticky reads which endpoint a client gets.
func (r *reading) sticky() {
	cookie, _ := r.value("session-cookie-name")
	age, hasAge := r.value("session-cookie-max-age")
	for _, name := range []string{
		"session-cookie-expires", "session-cookie-path", "session-cookie-samesite", "session-cookie-change-on-failure", "session-cookie-secure",
		"session-cookie-conditional-samesite-none", "affinity-mode", "affinity-canary-behavior",
	} {
		r.value(name)
	}
	if kind, ok := r.value("affinity"); ok && kind == "cookie" {
		if cookie == "" {
			cookie = "INGRESSCOOKIE"
		}
		config := map[string]any{"cookie": cookie}
		if n, err := strconv.Atoi(age); hasAge && err == nil && n > 0 {
			config["ttl"] = strconv.Itoa(n) + "s"
		}
		r.made.backend.Strategy = "ring_hash"
		r.add("affinity", "route_filter_affinity", config)
	}
	by, ok := r.value("upstream-hash-by")
	if !ok {
		return
	}
	config := map[string]any{}
	switch header, is := strings.CutPrefix(by, "$http_"); {
	case by == "$remote_addr" || by == "$binary_remote_addr":
		config["by"] = "address"
	case is:
		config["by"], config["header"] = "header", strings.ReplaceAll(header, "_", "-")
	default:
		r.note(prefix+"upstream-hash-by", "only $remote_addr and $http_NAME have an equivalent")
		return
	}
	r.made.backend.Strategy = "ring_hash"
	r.add("hash", "route_filter_affinity", config)
}

// balance reads how endpoints are chosen.
func (r *reading) balance() {
	switch v, ok := r.value("load-balance"); {
	case !ok || v == "round_robin":
	case v == "ewma":
		r.made.backend.Strategy = "least_request"
	default:
		r.note(prefix+"load-balance", "%q has no equivalent", v)
	}
}
