package crd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mapNames replaces the names in the configuration of a filter or global config. If no name changes, the text stays as
// it is.
func mapNames(
	typeName string, config json.RawMessage, change func(path, name string, kind model.Kind) string,
) (json.RawMessage, error) {
	changed := false
	note := func(path, name string, kind model.Kind) string {
		if name == "" {
			return ""
		}
		other := change(path, name, kind)
		changed = changed || other != name
		return other
	}
	f, g := model.Filter{Type: typeName, Config: model.JSON(config)},
		model.GlobalConfig{Type: typeName, Config: model.JSON(config)}
	for _, mapped := range []func(func(path, name string, kind model.Kind) string) (model.JSON, error){
		f.MapNames, g.MapNames,
	} {
		if out, err := mapped(note); err != nil || changed {
			return json.RawMessage(out), err
		}
	}
	return config, nil
}

const (
	clientSecret     = "client_secret"
	externalService  = "external_oauth_service"
	externalName     = externalService + ".name"
	redactedInString = `"` + model.Redacted + `"`
)

// namespacesIn are the paths in a globalconfig_oauth that name a namespace, which has no meaning outside a cluster.
func namespacesIn() []string {
	return []string{
		"openid_connect.client_secret_namespace", "openid_connect.hmac_secret_namespace", externalService + ".namespace",
	}
}

// edit replaces the value at a path of a JSON object with the result of change; nil removes it. If the object does not
// have the path, nothing changes.
func edit(object json.RawMessage, path string, change func(value json.RawMessage) json.RawMessage) json.RawMessage {
	key, rest, nested := strings.Cut(path, ".")
	dec := json.NewDecoder(bytes.NewReader(object))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return object
	}
	out := []byte{'{'}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return object
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return object
		}
		if name == key && nested {
			value = edit(value, rest, change)
		} else if name == key {
			if value = change(value); value == nil {
				continue
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, jsonText(name)...), ':'), value...)
	}
	return append(out, '}')
}

// jsonText returns a value as JSON.
func jsonText(v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a text
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// textAt returns the text at a path; empty if there is none.
func textAt(object json.RawMessage, path string) (text string) {
	edit(object, path, func(value json.RawMessage) json.RawMessage {
		_ = json.Unmarshal(value, &text) // any other type counts as no text
		return value
	})
	return text
}

// filters makes the RouteFilters.
func (e *exporter) filters() {
	for _, key := range e.source.keys(model.KindFilter, "") {
		f := e.source.objects[key].(*model.Filter)
		m := e.meta(objectName(f.Name), f.Name, f.Tags)
		config, original := rawJSON(f.Config), rawJSON(f.Config)
		if text := textAt(config, clientSecret); f.TypeName() == model.FilterOIDC && text != "" {
			name := e.inlineSecret(f.Name, "client-secret", text)
			original = edit(original, clientSecret, func(json.RawMessage) json.RawMessage { return []byte(redactedInString) })
			config = edit(config, clientSecret, func(json.RawMessage) json.RawMessage {
				return jsonText(map[string]string{"secret": name})
			})
		}
		if c, ok := f.Parse().Spec.(*model.BasicAuthFilter); ok && slices.ContainsFunc(c.Users, hasText) {
			config, original = e.passwords(f.Name, c)
		}
		if c, ok := f.Parse().Spec.(*model.AnyOfFilter); ok && c.BasicAuth != nil &&
			slices.ContainsFunc(c.BasicAuth.Users, hasText) {
			e.add("%s: a RouteFilter of the type %s names a secret for each password: put them into secrets", key.Path(), f.Type)
		}
		if hasSharedKey(f.Parse().Spec) {
			e.add("%s: a RouteFilter names a secret for hmac_key: put the key into a secret", key.Path())
		}
		if c, ok := f.Parse().Spec.(*model.AccessLogFilter); ok {
			config = jsonText(model.AccessLogFilter{Logs: e.logs(key, c.Logs)})
		}
		config = e.rename(f.TypeName(), config)
		noteConfig(&m, config, original)
		e.routeFilter(key, m, f.Type, config)
	}
}

// routeFilter adds the RouteFilter of a filter or list.
func (e *exporter) routeFilter(key model.Key, m metav1.ObjectMeta, typeName string, config json.RawMessage) {
	if len(config) > 262144 {
		e.add("%s: its configuration has %d bytes; a RouteFilter has at most 262144", key.Path(), len(config))
	}
	e.out.Filters = append(e.out.Filters, &gatewayv1.RouteFilter{
		TypeMeta: typeMeta(gatewayv1.KindRouteFilter), ObjectMeta: m,
		Spec: gatewayv1.RouteFilterSpec{
			Name: key.Name(), Type: gatewayv1.RouteFilterType(typeName),
			RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: string(config)},
		},
	})
}

// logs returns the names of the GlobalConfigs that the logs of a filter become.
func (e *exporter) logs(filter model.Key, names []string) []string {
	list := []string{}
	for _, name := range names {
		proxies := e.source.proxies[model.GlobalConfigKey(name)]
		if len(proxies) < 2 {
			list = append(list, name)
			continue
		}
		for _, proxy := range proxies {
			list = append(list, nameFor(name, proxy))
		}
	}
	if len(list) > model.MaxLogs {
		e.add("%s: its logs are %d GlobalConfigs, one for each proxy; a RouteFilter names at most %d",
			filter.Path(), len(list), model.MaxLogs)
	}
	return list
}

// passwords makes the Secrets of passwords given as text. It returns the configuration that names them, and the
// original without the contents.
func (e *exporter) passwords(filter string, c *model.BasicAuthFilter) (config, original json.RawMessage) {
	named, shown := *c, *c
	named.Users, shown.Users = slices.Clone(c.Users), slices.Clone(c.Users)
	for i, u := range c.Users {
		if hasText(u) {
			named.Users[i].Password = model.Password{Secret: e.inlineSecret(filter, "password."+u.Name, u.Password.Text)}
			shown.Users[i].Password = model.Password{Text: model.Redacted}
		}
	}
	return jsonText(named), jsonText(shown)
}

// hasText reports whether the password of a user is a text rather than the name of a secret.
func hasText(u model.User) bool { return u.Password.Text != "" }

// hasSharedKey reports whether a filter has the text of a key rather than the name of a secret.
func hasSharedKey(spec model.Spec) bool {
	tokens, _ := spec.(*model.JWTFilter)
	if either, is := spec.(*model.AnyOfFilter); is {
		tokens = either.JWT
	}
	if tokens == nil {
		return false
	}
	for _, t := range tokens.Issuers() {
		if t.HMACKey.Text != "" {
			return true
		}
	}
	return false
}

// globalConfigs makes the GlobalConfigs: one for each proxy, or one for all.
func (e *exporter) globalConfigs() {
	for _, key := range e.source.keys(model.KindGlobalConfig, "") {
		g := e.source.objects[key].(*model.GlobalConfig)
		original := rawJSON(g.Config)
		config := e.rename(g.TypeName(), original)
		if g.TypeName() == model.GlobalConfigOAuth {
			for _, path := range namespacesIn() {
				config = edit(config, path, func(json.RawMessage) json.RawMessage { return nil })
			}
			config = e.externalService(g, config)
		}
		if len(config) > 1048576 {
			e.add("%s: config has %d bytes; a GlobalConfig has at most 1048576", key.Path(), len(config))
		}
		e.eachProxy(key, g.Tags, func(m metav1.ObjectMeta, proxy string) {
			noteConfig(&m, config, original)
			e.out.GlobalConfigs = append(e.out.GlobalConfigs, &gatewayv1.GlobalConfig{
				TypeMeta: typeMeta(gatewayv1.KindGlobalConfig), ObjectMeta: m,
				Spec: gatewayv1.GlobalConfigSpec{
					Name: g.Name, Type: gatewayv1.GlobalConfigType(g.Type), Config: string(config), Proxy: gatewayv1.ProxyName(proxy),
				},
			})
		})
	}
}

func rawJSON(j model.JSON) json.RawMessage {
	if j == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(j)
}

// rename replaces the names in a configuration with those of Kubernetes.
func (e *exporter) rename(typeName string, config json.RawMessage) json.RawMessage {
	out, err := mapNames(typeName, config, func(_, name string, kind model.Kind) string {
		if kind == model.KindUpstream {
			return serviceName(name)
		}
		return objectName(name)
	})
	if err != nil {
		e.add("a configuration of the type %s: %s", typeName, err)
	}
	return out
}

// externalService makes the Service for the address of the identity provider; in a cluster the field has the name of a
// Service.
func (e *exporter) externalService(g *model.GlobalConfig, config json.RawMessage) json.RawMessage {
	c, ok := g.Parse().Spec.(*model.OAuthConfig)
	if !ok || c.ExternalOAuthService == nil {
		return config
	}
	name := objectNameOfProvider(g.Name)
	e.reserve(e.services, name, g.Key())
	if fault := e.service(metav1.ObjectMeta{Name: name, Namespace: e.options.Namespace}, c.ExternalOAuthService.Name,
		c.ExternalOAuthService.Port); fault != "" {
		e.add("%s: %s %s", g.Key().Path(), externalName, fault)
	}
	return edit(config, externalName, func(json.RawMessage) json.RawMessage { return jsonText(name) })
}

func objectNameOfProvider(globalConfig string) string { return serviceName(globalConfig + "-provider") }

// noteConfig keeps the configuration with the names of the REST API, if it differs.
func noteConfig(m *metav1.ObjectMeta, config, original json.RawMessage) {
	if bytes.Equal(config, original) {
		return
	}
	annotate(m, gatewayv1.AnnotationConfig, digest(config)+" "+string(original))
}

// originalOf returns the configuration that noteConfig has kept, if the object still has the one that was written.
func originalOf(m metav1.ObjectMeta, config string) (original string, ok bool) {
	sum, original, _ := strings.Cut(m.Annotations[gatewayv1.AnnotationConfig], " ")
	return original, original != "" && sum == digest([]byte(config))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:16]
}
