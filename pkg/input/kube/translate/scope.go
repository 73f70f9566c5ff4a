package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// result is what one unit became.
type result struct {
	// made are the objects that the unit became or needs.
	made map[model.Key]made
	// problems are in the order of the fields. dropped counts those beyond maxProblems.
	problems []Problem
	dropped  int
	// uses are the objects that were read for it.
	uses    map[Ref]struct{}
	proxies []string
	ignored bool
	// filter is what hosts need to know of a RouteFilter.
	filter filterState
	// onAll is the filter of a GlobalConfig that is on all proxies; empty means none.
	onAll string
	resultAPI
}

// made is an object of the store, with the field that it comes from.
type made struct {
	object  model.Object
	path    string
	order   int
	backend *backend
}

func newResult() *result {
	return &result{
		made: map[model.Key]made{}, uses: map[Ref]struct{}{},
		resultAPI: resultAPI{serves: map[hostOn]struct{}{}, attached: map[Ref][]string{}},
	}
}

// list returns the objects in the order in which they were made.
func (r *result) list() []Made {
	if len(r.made) == 0 {
		return nil
	}
	keys := make([]model.Key, 0, len(r.made))
	for key := range r.made {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b model.Key) int { return cmp.Compare(r.made[a].order, r.made[b].order) })
	list := make([]Made, len(keys))
	for i, key := range keys {
		list[i] = Made{key, r.made[key].path}
	}
	return list
}

// allProblems returns the problems, plus one that counts those that were left out.
func (r *result) allProblems() []Problem {
	if r.dropped == 0 {
		return r.problems
	}
	return append(slices.Clone(r.problems), Problem{Reason: Invalid, Message: fmt.Sprintf("%d more problems will be "+
		"shown when these are solved", r.dropped)})
}

// closed returns the first problem, for objects that name this one; the zero Problem if there is none.
func (r *result) closed() Problem {
	if len(r.problems) == 0 {
		return Problem{}
	}
	return r.problems[0]
}

// scope is one translation of one unit.
type scope struct {
	world *World
	of    Ref
	*result
}

// make adds an object. If several fields need it, the first one counts.
func (s *scope) make(obj model.Object, path string) {
	if key := obj.Key(); s.made[key].object == nil {
		s.made[key] = made{object: obj, path: path, order: len(s.made)}
	}
}

func (s *scope) problem(path, reason, format string, args ...any) {
	if len(s.problems) == maxProblems {
		s.dropped++
		return
	}
	s.problems = append(s.problems, Problem{path, reason, inWordsOfKubernetes(fmt.Sprintf(format, args...))})
}

// inWordsOfKubernetes replaces the fields of the REST API in a message with those of a GatewayHost or Secret.
func inWordsOfKubernetes(message string) string {
	return strings.NewReplacer(
		"Upstream_protocol tls or h2", "protocol tls or h2", "Upstream_validation_cacertificate", "caSecret",
		"the rewrite of Route_config changes", "the rewrite of a route changes", "; send both in one call to replace both",
		"",
		"create a secret with the text as its Secret_value, and give its name",
		"create a Secret with the text as its only entry, and give its name",
		"send the key as Secret_key", "the key is the entry tls.key", "send certificates as Secret_cert",
		"certificates are the entry tls.crt",
	).Replace(message)
}

func (s *scope) use(dep Ref) { s.uses[dep] = struct{}{} }

// permits reports whether the object may name another one, and records a problem if not.
func (s *scope) permits(path string, to Ref) bool {
	if to.Namespace == s.of.Namespace {
		return true
	}
	if len(validation.IsDNS1123Label(to.Namespace)) > 0 {
		s.problem(path, RefNotFound, "%q is not the name of a namespace", to.Namespace)
		return false
	}
	if isAPI(s.of.Kind) {
		return s.permitsAPI(path, to)
	}
	s.use(grantsOf(to.Namespace))
	for _, grant := range s.world.grants[to.Namespace] {
		from := gatewayv1.ReferenceGrantFrom{Kind: s.of.Kind, Namespace: gatewayv1.Namespace(s.of.Namespace)}
		if slices.Contains(grant.Spec.From,
			from) && slices.ContainsFunc(grant.Spec.To, func(t gatewayv1.ReferenceGrantTo) bool {
			return t.Kind == to.Kind && (t.Name == "" || t.Name == to.Name)
		}) {
			return true
		}
	}
	if why := s.world.unreadable[gatewayv1.KindReferenceGrant]; why != "" {
		s.problem(path, RefNotPermitted, "%s may not be named from namespace %s, because no ReferenceGrant can be read: %s",
			to, s.of.Namespace, why)
		return false
	}
	s.problem(path, RefNotPermitted, "%s may not be named from namespace %s: "+
		"a ReferenceGrant in namespace %s must allow it (from kind %s of namespace %s, to kind %s)",
		to, s.of.Namespace, to.Namespace, s.of.Kind, s.of.Namespace, to.Kind)
	return false
}

// service returns a Service that the object may name; nil, with a problem, if there is none.
func (s *scope) service(path string, ref Ref) *corev1.Service {
	if !s.permits(path, ref) {
		return nil
	}
	s.use(ref)
	svc := s.world.services[ref]
	if svc == nil {
		s.notFound(path, ref)
	}
	return svc
}

// notFound records that an object does not exist, or cannot be read.
func (s *scope) notFound(path string, ref Ref) {
	if why := s.world.unreadable[ref.Kind]; why != "" {
		s.problem(path, RefNotFound, "%s cannot be read: %s", ref, why)
		return
	}
	s.problem(path, RefNotFound, "%s does not exist", ref)
}

// isNamed reports whether an API server can have an object of this name.
func isNamed(ref Ref) bool {
	return len(validation.IsDNS1123Label(ref.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(ref.Name)) == 0
}
