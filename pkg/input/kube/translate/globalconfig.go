package translate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// configField is the field with the JSON of a GlobalConfig.
const configField = "spec.config"

// globalConfig makes the global config of a GlobalConfig, the objects that it names, and its links to
// proxies. A login that cannot be used closes what it would have protected.
func (s *scope) globalConfig(u *unit, o *gatewayv1.GlobalConfig) {
	s.proxies = s.world.proxiesOf(string(o.Spec.Proxy))
	if len(s.proxies) == 0 {
		s.ignored = true
		return
	}
	g := &model.GlobalConfig{
		// The domains of rate limits have the ID in their names, which must be the same in all replicas.
		ID: idOf(s.of), CreateTS: model.At(o.CreationTimestamp.Time),
		Name: objectName(s.of.Namespace, s.of.Name), Type: string(o.Spec.Type),
	}
	if f := s.proxyFilter(string(o.Spec.Type)); f != nil {
		s.putProxyFilter(f, o)
		return
	}
	if len(o.Spec.Exempt) > 0 {
		s.problem("spec.exempt", Invalid, "is for the types of filters, and %s is none", g.Type)
	}
	if g.TypeName() == model.GlobalConfigACME {
		s.problem("spec.type", Invalid, "nothing orders certificates here: cert-manager does it in Kubernetes")
		return
	}
	isLogin := g.TypeName() == model.GlobalConfigOAuth
	if isLogin && !s.takesLogin(u) {
		return
	}
	if !s.readGlobalConfig(g, o.Spec.Config) {
		if !isLogin {
			return
		}
		g.Config = closedLogin(s.emptySecret(configField, s.of.Namespace, s.of.Name, "invalid"))
	}
	s.make(g, "")
	if len(s.proxies) == len(s.world.proxies) && o.Spec.Proxy == "" {
		return // without links it would apply to every proxy
	}
	for _, proxy := range s.proxies {
		s.make(&model.ProxyGlobalConfig{Proxy: proxy, GlobalConfig: g.Name}, "spec.proxy")
	}
}

// takesLogin removes the proxies whose login an older GlobalConfig sets. It reports whether any proxy
// is left.
func (s *scope) takesLogin(u *unit) bool {
	var free []string
	for _, proxy := range s.proxies {
		if holder := s.world.holder(claim{s.of.Kind, proxy, ""}); holder != nil && holder != u {
			s.problem("spec.type", LoginConflict, "%s sets the login of proxy %s and is older; this one does not apply there",
				holder.ref, proxy)
			continue
		}
		free = append(free, proxy)
	}
	s.proxies = free
	return len(free) > 0
}

// idOf returns an object's ID. It is the same in every replica, and too large for a database to assign to
// another object.
func idOf(ref Ref) int64 {
	var id int64
	for _, c := range hash(ref.Kind, ref.Namespace, ref.Name)[:13] { // 52 bits, which JSON can represent
		id = id<<4 | int64(strings.IndexRune("0123456789abcdef", c))
	}
	return id | 1<<52
}

// readGlobalConfig reads the JSON into g, with the names of the store.
func (s *scope) readGlobalConfig(g *model.GlobalConfig, text string) bool {
	config, err := model.CompactJSON(text)
	if err != nil {
		s.problem(configField, Invalid, "%s", err)
		return false
	}
	g.Config = config
	fields := map[string]string{
		"globalconfig_name": "metadata.name", "globalconfig_type": "spec.type", "config": configField,
	}
	if s.refuses(g, fields) {
		return false
	}
	parsed := g.Parse()
	names := s.names(configField, loginOf(parsed.Spec))
	oauth, isLogin := parsed.Spec.(*model.OAuthConfig)
	if isLogin {
		names.namespaces["openid_connect.client_secret"] = oauth.OpenIDConnect.ClientSecretNamespace
		names.namespaces["openid_connect.hmac_secret"] = oauth.OpenIDConnect.HMACSecretNamespace
	}
	if g.Config, err = g.MapNames(names.change); err != nil {
		s.problem(configField, Invalid, "%s", err)
		return false
	}
	if isLogin && oauth.ExternalOAuthService != nil && !s.externalService(g, oauth, names) {
		return false
	}
	return names.hold(g.Parse().Names()) && !s.refuses(g, fields)
}

// externalService replaces the Service that external_oauth_service names with its upstream.
func (s *scope) externalService(g *model.GlobalConfig, oauth *model.OAuthConfig, names *names) bool {
	service := oauth.ExternalOAuthService
	login := oauth.Login()
	protocol, subject := "tls", ""
	if service.Protocol == "tcp" {
		protocol = "http"
	} else if endpoint, err := url.Parse(cmp.Or(login.TokenEndpoint, login.Issuer)); err == nil {
		subject = endpoint.Hostname()
	}
	ref := Ref{KindService, cmp.Or(service.Namespace, s.of.Namespace), service.Name}
	upstream, f := s.provider(configField, ref, intstr.FromInt(service.Port), login, protocol, subject)
	if f != granted {
		return false
	}
	renamed, ok := g.Parse().Spec.(*model.OAuthConfig)
	if !ok {
		return false
	}
	c := *renamed
	c.ExternalOAuthService, c.OpenIDConnect.Upstream = nil, upstream
	text, err := json.Marshal(c)
	if err != nil {
		s.problem(configField, Invalid, "%s", err)
		return false
	}
	g.Config = model.JSON(text)
	names.given = append(names.given, model.UpstreamKey(upstream))
	return true
}

// provider makes the upstream of an identity provider's Service. Without a port it is the Service's only one,
// or the default of http or https if the Service lists none. Empty protocol and subject mean those of the
// Service and the login.
func (s *scope) provider(
	at string, ref Ref, port intstr.IntOrString, login *model.Login, protocol, subject string,
) (name string, f fate) {
	svc := s.service(at, ref)
	if svc == nil {
		return "", missing
	}
	isHTTPS := login != nil && strings.HasPrefix(cmp.Or(login.TokenEndpoint, login.Issuer), "https://")
	if port.Type == intstr.String && port.StrVal == "" {
		switch {
		case len(svc.Spec.Ports) == 1:
			port = intstr.FromInt32(svc.Spec.Ports[0].Port)
		case len(svc.Spec.Ports) > 1:
			s.problem(at, Invalid, "%s has more than one port: write upstream as SERVICE.PORT", ref)
			return "", missing
		case isHTTPS:
			port = intstr.FromInt32(443)
		default:
			port = intstr.FromInt32(80)
		}
	}
	settings, err := settingsOf(svc)
	if err != nil {
		s.problem(at, Invalid, "%s has an annotation %s that cannot be used: %s", ref, gatewayv1.AnnotationUpstream, err)
		return "", unusable
	}
	if protocol == "" && isHTTPS {
		protocol = "tls"
	}
	if settings.Protocol != "" && (settings.Protocol == "tls" || settings.Protocol == "h2") == (protocol == "tls") {
		protocol = settings.Protocol
	}
	settings.Protocol = ""
	return s.upstream(wish{
		at: at, portAt: at, settingsAt: at, ref: ref, port: port, settings: settings, protocol: protocol, subject: subject,
	})
}

// settingsOf reads the settings with which a login connects to a Service.
func settingsOf(svc *corev1.Service) (settings gatewayv1.BackendSettings, err error) {
	text := svc.Annotations[gatewayv1.AnnotationUpstream]
	if text == "" {
		return settings, nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&settings); err != nil || settings.TLS == nil {
		return settings, err
	}
	for _, secret := range []*gatewayv1.SecretReference{settings.TLS.CASecret, settings.TLS.ClientSecret} {
		switch {
		case secret == nil:
		case secret.Namespace != "" && string(secret.Namespace) != svc.Namespace:
			// Otherwise anyone who may write to the Service could use the Secrets of others.
			return settings, errors.New("a Secret must be in the namespace of the Service")
		default:
			secret.Namespace = gatewayv1.Namespace(svc.Namespace)
		}
	}
	return settings, nil
}

// closedLogin returns the JSON of a login that can never work: it closes whatever it applies to. secret is an
// empty secret.
func closedLogin(secret string) model.JSON {
	return model.JSON(fmt.Sprintf(`{"openid_connect":{"provider":{"authorization_endpoint":"https://closed.invalid/authorize",`+
		`"token_endpoint":"https://closed.invalid/token"},"client_id":"closed","client_secret":%[1]q,"hmac_secret":%[1]q,`+
		`"redirect_url":"/oauth2/callback","redirect_path_matcher":"/oauth2/callback"}}`, secret))
}
