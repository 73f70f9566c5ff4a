package translate

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// filterState is what hosts need to know of a RouteFilter.
type filterState struct {
	exists bool
	// usable says that there is a filter in the store. It may still be closed, for example by a
	// missing secret.
	usable   bool
	onRoutes bool
	typeName string
	// list is the type of a list; empty for a filter.
	list string
}

// routeFilter makes the filter of a RouteFilter, and the objects that it names. An unusable
// filter is left out, and whatever names it is closed.
func (s *scope) routeFilter(o *gatewayv1.RouteFilter) {
	const at = "spec.routeFilterConfig.config"
	if typeName, isList := strings.CutPrefix(string(o.Spec.Type), model.ListPrefix); isList {
		s.list(typeName, at, o.Spec.RouteFilterConfig.Config)
		return
	}
	f := &model.Filter{Name: objectName(s.of.Namespace, s.of.Name), Type: string(o.Spec.Type)}
	s.filter = filterState{exists: true, typeName: f.TypeName(), onRoutes: f.FitsOn(model.KindRoute)}
	if s.filter.usable = s.readFilter(f, at, o.Spec.RouteFilterConfig.Config); s.filter.usable {
		s.make(f, "")
	}
}

// readFilter reads the JSON of a field into f, with the names of the store. It reports whether the filter can be used.
func (s *scope) readFilter(f *model.Filter, at, text string) bool {
	config, err := model.CompactJSON(text)
	if err != nil {
		s.problem(at, Invalid, "%s", err)
		return false
	}
	f.Config = config
	if s.refuses(f, map[string]string{"Filter_name": "metadata.name", "Filter_type": "spec.type", "Filter_config": at}) {
		return false
	}
	if !s.clientSecret(at, f) || !s.ownConsumers(at, f) {
		return false
	}
	names := s.names(at, loginOf(f.Parse().Spec))
	names.list = f.ListType()
	if f.Config, err = f.MapNames(names.change); err != nil {
		s.problem(at, Invalid, "%s", err)
		return false
	}
	return names.hold(f.Parse().Names()) && !s.refuses(f, map[string]string{"Filter_config": at})
}

// clientSecret makes a secret from a client secret given as text, unless the text is the name of
// a Secret: a store would read it as the name of any secret that it has. It reports whether that
// succeeded.
func (s *scope) clientSecret(at string, f *model.Filter) bool {
	name := ownName(s.of.Namespace, s.of.Name, "client-secret")
	text, err := f.DetachClientSecret(name)
	if err == nil && text != "" {
		if c, ok := f.Parse().Spec.(*model.OIDCFilter); !ok || c.ClientSecret.Text != "" {
			s.problem(at, Invalid, "client_secret occurs more than once")
			return false
		}
	}
	if err != nil {
		s.problem(at, Invalid, "client_secret: %s", err)
		return false
	}
	if text == "" {
		return true
	}
	named := Ref{KindSecret, s.of.Namespace, text}
	if isNamed(named) {
		s.use(named)
		if state := s.world.secrets[named]; state != nil && (state.object != nil || state.unreadable != "") {
			return s.rename(at, f, name, text)
		}
	}
	secret := &model.Secret{Name: name, Type: model.SecretGeneric, Value: text}
	if fault := faultOf(name, *secret); fault != "" {
		s.problem(at, Invalid, "client_secret %s", fault)
		return false
	}
	s.make(secret, at)
	return true
}

// rename replaces the name of a secret that was made for a client secret with the name of a Secret.
func (s *scope) rename(at string, f *model.Filter, made, name string) bool {
	config, err := f.MapNames(func(_, old string, _ model.Kind) string {
		if old == made {
			return name
		}
		return old
	})
	if err != nil {
		s.problem(at, Invalid, "%s", err)
		return false
	}
	f.Config = config
	return true
}

// refuses reports whether a store would refuse an object, and says why. fields maps the object's
// fields to those of the Kubernetes object.
func (s *scope) refuses(obj model.Confidential, fields map[string]string) bool {
	wrong := obj.Validate()
	if len(wrong) == 0 {
		wrong = refusedBySealing(cloneOf(obj).(model.Confidential))
	}
	return s.reports(wrong, fields)
}

// reports reports what is wrong with an object, and whether something is.
func (s *scope) reports(wrong []model.FieldError, fields map[string]string) bool {
	for _, e := range wrong {
		field, inside, _ := strings.Cut(e.Field, ".")
		if inside != "" {
			inside += ": "
		}
		s.problem(cmp.Or(fields[field], "spec"), Invalid, "%s%s", inside, e.Message)
	}
	return len(wrong) > 0
}

// loginOf returns the login of a configuration; nil if it is no login.
func loginOf(spec model.Spec) *model.Login {
	switch c := spec.(type) {
	case *model.OIDCFilter:
		return c.Login()
	case *model.OAuthConfig:
		return c.Login()
	}
	return nil
}

// names replaces the names in a configuration with the names in the store.
type names struct {
	scope *scope
	at    string
	login *model.Login
	// namespaces are the namespaces of the named objects, by path; the object's own if none is set.
	namespaces map[string]string
	// list is the type of the lists that it names.
	list string
	// given are the keys that were inserted.
	given []model.Key
	// missing says that a named object cannot be in the store.
	missing bool
}

func (s *scope) names(at string, login *model.Login) *names {
	return &names{scope: s, at: at, login: login, namespaces: map[string]string{}}
}

// change returns the new name for a name.
func (n *names) change(path, name string, kind model.Kind) string {
	namespace := cmp.Or(n.namespaces[path], n.scope.of.Namespace)
	own := ownName(n.scope.of.Namespace, n.scope.of.Name, "client-secret")
	switch {
	case name == own && n.scope.made[model.SecretKey(own)].object != nil: // see clientSecret
	case kind == model.KindSecret:
		name, _ = n.scope.secret(n.at, Ref{KindSecret, namespace, name}, forValue)
	case kind == model.KindKeySet:
		set, usable := n.scope.keySet(n.at, Ref{KindSecret, namespace, name})
		name, n.missing = set, n.missing || !usable
	case kind == model.KindList:
		list, usable := n.scope.listNamed(n.at, Ref{gatewayv1.KindRouteFilter, namespace, name}, n.list)
		name, n.missing = list, n.missing || !usable
	case kind == model.KindGlobalConfig: // a log, which may be absent: nothing is closed then
		ref := Ref{gatewayv1.KindGlobalConfig, namespace, name}
		n.scope.use(ref)
		if n.scope.world.objectOf(ref) == nil {
			n.scope.notFound(n.at, ref)
		}
		name = objectName(namespace, name)
	case kind == model.KindUpstream:
		service, port, _ := strings.Cut(name, ".")
		upstream, f := n.scope.provider(n.at, Ref{KindService, namespace, service}, intstr.Parse(port), n.login, "", "")
		name, n.missing = upstream, n.missing || f != granted
	}
	n.given = append(n.given, model.NewKey(kind, name))
	return name
}

// hold reports whether an object names nothing but the inserted keys: if a text was parsed
// differently than it was replaced, it must not name the objects of others.
func (n *names) hold(keys []model.Key) bool {
	if n.missing {
		return false
	}
	for _, key := range keys {
		if !slices.Contains(n.given, key) {
			n.scope.problem(n.at, Invalid, "it names %s %q in a way that cannot be read", key.Kind, key.Name())
			return false
		}
	}
	return true
}
