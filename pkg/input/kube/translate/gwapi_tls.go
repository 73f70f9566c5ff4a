package translate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// KindConfigMap is a kind whose objects have authorities, and are read as Secrets are.
const KindConfigMap = "ConfigMap"

// kindPolicies stands for the BackendTLSPolicies of a Service.
const kindPolicies = "BackendTLSPolicies of Service"

// maxAncestors is the most that the status of a policy may have.
const maxAncestors = 16

// IsFetched reports whether objects of a kind are read one by one, when others name them.
func IsFetched(kind string) bool { return kind == KindSecret || kind == KindConfigMap }

func policiesOf(service Ref) Ref { return Ref{kindPolicies, service.Namespace, service.Name} }

// policiesTarget returns the Service of what policiesOf returns.
func policiesTarget(policies Ref) Ref { return Ref{KindService, policies.Namespace, policies.Name} }

// policyState is what routes need to know of a BackendTLSPolicy.
type policyState struct {
	// authorities is the secret with the authorities; empty means those of the system.
	authorities, hostname, altNames string
	// fault says why no connection may be made; empty means that they may.
	fault string
}

// authoritiesIn returns what is read of a ConfigMap, in the form of a Secret.
func authoritiesIn(o *corev1.ConfigMap) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: o.ObjectMeta, Data: map[string][]byte{}}
	if text, ok := o.Data[corev1.ServiceAccountRootCAKey]; ok {
		s.Data[corev1.ServiceAccountRootCAKey] = []byte(text)
	}
	return s
}

// targetsOf lists the Services of a policy, each with the sections that it is for; an empty one is all ports.
func targetsOf(o *gwapi.BackendTLSPolicy) map[Ref][]string {
	targets := map[Ref][]string{}
	for _, t := range o.Spec.TargetRefs {
		if t.Group == "" && t.Kind == KindService {
			service := Ref{KindService, o.Namespace, string(t.Name)}
			targets[service] = append(targets[service], text(t.SectionName, ""))
		}
	}
	return targets
}

// putPolicy records the Services of a BackendTLSPolicy, before its unit has the object; nil if it is gone. What depends
// on the policies of these Services is translated again: the other policies too, which it may conflict with.
func (w *World) putPolicy(ref Ref, o *gwapi.BackendTLSPolicy) {
	if old, ok := w.objectOf(ref).(*gwapi.BackendTLSPolicy); ok && o != nil && old != nil &&
		reflect.DeepEqual(old.Spec, o.Spec) && old.CreationTimestamp.Equal(&o.CreationTimestamp) {
		return
	}
	changed := map[Ref]struct{}{}
	for service, of := range w.policies {
		if _, had := of[ref]; had {
			if delete(of, ref); len(of) == 0 {
				delete(w.policies, service)
			}
			changed[service] = struct{}{}
		}
	}
	if o != nil {
		for service := range targetsOf(o) {
			if w.policies[service] == nil {
				w.policies[service] = map[Ref]struct{}{}
			}
			w.policies[service][ref] = struct{}{}
			changed[service] = struct{}{}
		}
	}
	for service := range changed {
		w.markUsers(policiesOf(service))
	}
}

// policyFor returns the policy of a section of a Service; false if there is none. Of several, it is the oldest one, and
// then the first one by name.
func (w *World) policyFor(service Ref, section string) (first Ref, found bool) {
	var best *gwapi.BackendTLSPolicy
	for ref := range w.policies[service] {
		o, ok := w.objectOf(ref).(*gwapi.BackendTLSPolicy)
		if !ok || !slices.Contains(targetsOf(o)[service], section) {
			continue
		}
		if best == nil || cmp.Or(o.CreationTimestamp.Compare(best.CreationTimestamp.Time), strings.Compare(o.Name, best.Name)) < 0 {
			best, first = o, ref
		}
	}
	return first, best != nil
}

// touchPolicies notes that the ancestors of the policies of a Service, which are the Gateways of their users, may have
// changed.
func (w *World) touchPolicies(ref Ref) {
	if ref.Kind == kindPolicies {
		for policy := range w.policies[policiesTarget(ref)] {
			w.touched[policy] = struct{}{}
		}
	}
}

// applyPolicy makes the upstream of an HTTPRoute or GRPCRoute verify its certificate as a policy says, the first one of
// the Services. It reports whether connections may be made.
func (s *scope) applyPolicy(w wish, services []Ref, section string, u *model.Upstream) bool {
	if s.of.Kind != KindHTTPRoute && s.of.Kind != KindGRPCRoute {
		return true
	}
	ref, found := Ref{}, false
	for _, service := range services {
		s.use(policiesOf(service))
		for _, at := range []string{section, ""} {
			if !found {
				ref, found = s.world.policyFor(service, at)
			}
		}
	}
	if !found {
		return true
	}
	s.use(ref)
	r := s.world.resultOf(ref)
	if r == nil {
		return false // it is translated before routes
	}
	p := r.policy
	if p.fault != "" {
		s.problem(w.at, Invalid, "%s has %s, which cannot be used: %s", w.ref, ref, p.fault)
		return false
	}
	switch u.Protocol {
	case "h2c", "h2":
		u.Protocol = "h2"
	default:
		u.Protocol = "tls"
	}
	u.TLSInsecure, u.ValidationCACertificate = false, p.authorities
	u.ValidationSubjectName, u.ValidationAltNames = p.hostname, p.altNames
	return true
}

// backendTLSPolicy reads a policy.
func (s *scope) backendTLSPolicy(o *gwapi.BackendTLSPolicy) {
	accepted, resolved := Verdict{}, Verdict{}
	set := func(v *Verdict, reason gwapi.PolicyConditionReason, format string, args ...any) {
		if v.Reason == "" {
			v.Reason, v.Message = string(reason), fmt.Sprintf(format, args...)
		}
	}
	v := o.Spec.Validation
	s.policy.hostname = strings.ToLower(string(v.Hostname))
	var names []string
	for i, n := range v.SubjectAltNames {
		name := string(n.URI)
		if n.Type == gwapi.HostnameSubjectAltNameType {
			name = strings.ToLower(string(n.Hostname))
		}
		if strings.HasPrefix(name, "*") || strings.Contains(name, ",") {
			set(&accepted, gwapi.PolicyReasonInvalid, "spec.validation.subjectAltNames[%d]: %q is not supported", i, name)
		}
		names = append(names, name)
	}
	s.policy.altNames = strings.Join(names, ",")
	if len(o.Spec.Options) > 0 {
		set(&accepted, gwapi.PolicyReasonInvalid, "spec.options: none is supported")
	}
	if known := text(v.WellKnownCACertificates, ""); known != "" && known != string(gwapi.WellKnownCACertificatesSystem) {
		set(&accepted, gwapi.PolicyReasonInvalid, "spec.validation.wellKnownCACertificates: %q is not supported", known)
	}
	if len(v.CACertificateRefs) > 0 {
		reason, message := s.policyAuthorities(o)
		if s.policy.authorities == "" {
			set(&accepted, gwapi.BackendTLSPolicyReasonNoValidCACertificate, "%s", message)
		}
		if reason != "" {
			set(&resolved, reason, "%s", message)
		}
	}
	if s.policy.fault = accepted.Message; s.policy.fault == "" {
		wrong := (&model.Upstream{
			Name: "x", IP: "x", Port: 1, Protocol: "tls", ValidationSubjectName: s.policy.hostname, ValidationAltNames: s.policy.altNames,
		}).Validate()
		for _, e := range wrong {
			if strings.HasPrefix(e.Field, "Upstream_validation_") {
				set(&accepted, gwapi.PolicyReasonInvalid, "spec.validation: %s", e.Message)
				s.policy.fault = accepted.Message
			}
		}
	}
	if other := s.conflictOf(o); other != "" { // the policy that is used is another one
		set(&accepted, gwapi.PolicyReasonConflicted, "%s", other)
	}
	s.api = &PolicyResult{Conditions: []Verdict{
		verdict(gwapi.PolicyConditionAccepted, gwapi.PolicyReasonAccepted, "it is used", gwapi.PolicyConditionReason(accepted.Reason), accepted.Message),
		verdict(gwapi.BackendTLSPolicyConditionResolvedRefs, gwapi.BackendTLSPolicyReasonResolvedRefs, "every object that it names can be used",
			gwapi.PolicyConditionReason(resolved.Reason), resolved.Message),
	}}
}

// policyAuthorities makes the secret with the authorities that a policy names. The reason says why one of them cannot be
// used; empty means that all can.
func (s *scope) policyAuthorities(o *gwapi.BackendTLSPolicy) (reason gwapi.PolicyConditionReason, message string) {
	var all []string
	for i, r := range o.Spec.Validation.CACertificateRefs {
		at := fmt.Sprintf("spec.validation.caCertificateRefs[%d]", i)
		if r.Group != "" || !IsFetched(string(r.Kind)) {
			reason, message = gwapi.BackendTLSPolicyReasonInvalidKind, fmt.Sprintf("%s: authorities are in a ConfigMap or Secret, and not in a %s", at, r.Kind)
			continue
		}
		ref, form := Ref{string(r.Kind), s.of.Namespace, string(r.Name)}, secretForm{}
		wrong := s.problemsOf(func() {
			if state := s.readSecret(at, ref); state != nil {
				form = state.form(ref.Name, forAuthorities)
			}
		})
		switch {
		case form.fault != "":
			reason, message = gwapi.BackendTLSPolicyReasonInvalidCACertificateRef, fmt.Sprintf("%s: %s %s", at, ref, form.fault)
		case len(wrong) > 0:
			reason, message = gwapi.BackendTLSPolicyReasonInvalidCACertificateRef, at+": "+wrong[0].Message
		default:
			all = append(all, strings.TrimSpace(form.secret.Cert)+"\n")
		}
	}
	if len(all) == 0 {
		return reason, message
	}
	secret := &model.Secret{Name: ownName(s.of.Namespace, s.of.Name, "backend-ca"), Type: model.SecretTLS, Cert: strings.Join(all, "")}
	if fault := faultOf(secret.Name, *secret); fault != "" {
		return gwapi.BackendTLSPolicyReasonInvalidCACertificateRef, "spec.validation.caCertificateRefs: all together: " + fault
	}
	s.make(secret, "spec.validation.caCertificateRefs")
	s.policy.authorities = secret.Name
	return reason, message
}

// conflictOf says which older policy has a target of this one; empty if there is none.
func (s *scope) conflictOf(o *gwapi.BackendTLSPolicy) string {
	targets := targetsOf(o)
	for _, service := range slices.SortedFunc(maps.Keys(targets), Ref.Compare) {
		s.use(policiesOf(service))
		for _, section := range targets[service] {
			if first, found := s.world.policyFor(service, section); found && first != s.of {
				return fmt.Sprintf("%s has the same target, %s", first, service)
			}
		}
	}
	return ""
}

// withAncestors adds the Gateways whose routes need a policy.
func (w *World) withAncestors(o *gwapi.BackendTLSPolicy, p *PolicyResult) *PolicyResult {
	gateways := map[Ref]struct{}{}
	for service := range targetsOf(o) {
		for user := range w.users[policiesOf(service)] {
			if r := w.resultOf(user); r != nil {
				for g := range r.attached {
					if set := w.resultOf(g); g.Kind == KindListenerSet && set != nil && set.set != nil {
						g = set.set.gateway
					}
					gateways[g] = struct{}{}
				}
			}
		}
	}
	with := &PolicyResult{Conditions: p.Conditions}
	for _, g := range slices.SortedFunc(maps.Keys(gateways), Ref.Compare) {
		if len(with.Ancestors) == maxAncestors {
			break
		}
		group, kind, namespace := gwapi.Group(gwapi.GroupName), gwapi.Kind(KindGateway), gwapi.Namespace(g.Namespace)
		with.Ancestors = append(with.Ancestors, gwapi.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: gwapi.ObjectName(g.Name)})
	}
	return with
}
