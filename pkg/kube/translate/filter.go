package translate

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// filterState is what hosts need to know of a RouteFilter.
type filterState struct {
	exists bool
	// usable says that there is a filter of the store. It may be closed all the same, as by a
	// secret that is missing.
	usable   bool
	onRoutes bool
	typeName string
}

// routeFilter makes the filter of a RouteFilter, and what it names. One that cannot be used is
// left out: what names it is closed.
func (s *scope) routeFilter(o *gatewayv1.RouteFilter) {
	const at = "spec.routeFilterConfig.config"
	f := &model.Filter{Name: objectName(s.of.Namespace, s.of.Name), Type: string(o.Spec.Type)}
	s.filter = filterState{exists: true, typeName: string(o.Spec.Type), onRoutes: f.FitsOn(model.KindRoute)}
	config, err := model.CompactJSON(o.Spec.RouteFilterConfig.Config)
	if err != nil {
		s.problem(at, Invalid, "%s", err)
		return
	}
	f.Config = config
	if s.refuses(f, map[string]string{"Filter_name": "metadata.name", "Filter_type": "spec.type", "Filter_config": at}) {
		return
	}
	if !s.clientSecret(at, f) {
		return
	}
	names := s.names(at, loginOf(f.Parse().Spec))
	if f.Config, err = f.MapNames(names.change); err != nil {
		s.problem(at, Invalid, "%s", err)
		return
	}
	if s.filter.usable = names.hold(f.Parse().Names()) && !s.refuses(f, map[string]string{"Filter_config": at}); s.filter.usable {
		s.make(f, "")
	}
}

// clientSecret makes a secret of a client secret that is a text, unless that is the name of a
// Secret: a store would take it for the name of any secret that it has. It reports whether
// that could be done.
func (s *scope) clientSecret(at string, f *model.Filter) bool {
	name := ownName(s.of.Namespace, s.of.Name, "client-secret")
	text, err := f.DetachClientSecret(name)
	if err == nil && text != "" {
		if c, ok := f.Parse().Spec.(*model.OIDCFilter); !ok || c.ClientSecret.Text != "" {
			s.problem(at, Invalid, "client_secret is there more than once")
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

// rename puts the name of a Secret in place of one that was made for a client secret.
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

// refuses reports whether a store would refuse an object, and says why. fields are the fields of
// the Kubernetes object that those of the object come from.
func (s *scope) refuses(obj model.Confidential, fields map[string]string) bool {
	wrong := obj.Validate()
	if len(wrong) == 0 {
		wrong = refusedBySealing(cloneOf(obj).(model.Confidential))
	}
	for _, e := range wrong {
		field, inside, _ := strings.Cut(e.Field, ".")
		if inside != "" {
			inside += ": "
		}
		s.problem(cmp.Or(fields[field], "spec"), Invalid, "%s%s", inside, e.Message)
	}
	return len(wrong) > 0
}

// loginOf is the login that a configuration is; nil if it is none.
func loginOf(spec model.Spec) *model.Login {
	switch c := spec.(type) {
	case *model.OIDCFilter:
		return c.Login()
	case *model.OAuthConfig:
		return c.Login()
	}
	return nil
}

// names replaces the names in a configuration by those of the store.
type names struct {
	scope *scope
	at    string
	login *model.Login
	// namespaces are those of what is named, by path; the object's own where none is given.
	namespaces map[string]string
	// given are the keys that were put in.
	given []model.Key
	// missing says that something that is named cannot stand in the store.
	missing bool
}

func (s *scope) names(at string, login *model.Login) *names {
	return &names{scope: s, at: at, login: login, namespaces: map[string]string{}}
}

// change is what a name becomes.
func (n *names) change(path, name string, kind model.Kind) string {
	namespace := cmp.Or(n.namespaces[path], n.scope.of.Namespace)
	own := ownName(n.scope.of.Namespace, n.scope.of.Name, "client-secret")
	switch {
	case name == own && n.scope.made[model.SecretKey(own)].object != nil: // see clientSecret
	case kind == model.KindSecret:
		name, _ = n.scope.secret(n.at, Ref{KindSecret, namespace, name}, forValue)
	case kind == model.KindKeySet:
		n.scope.problem(n.at, Invalid, "key sets are objects of the REST API, which a Kubernetes object cannot name")
		n.missing = true
	case kind == model.KindUpstream:
		service, port, _ := strings.Cut(name, ".")
		upstream, f := n.scope.provider(n.at, Ref{KindService, namespace, service}, intstr.Parse(port), n.login, "", "")
		name, n.missing = upstream, n.missing || f != granted
	}
	n.given = append(n.given, model.NewKey(kind, name))
	return name
}

// hold reports whether an object names nothing but what was given to it: what was read in
// another way than it was replaced must not name anything of others.
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
