package translate

import (
	"net/http"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	exprv1 "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// This file distinguishes HTTPS from plain HTTP for each request. Both listeners have
// the same routes.

// misdirected names the policy that refuses a request for a host that its connection
// was not made for (RFC 9110 section 15.5.20). The name is also in the response
// details.
const misdirected = "misdirected"

// misdirectedPolicy matches a request whose Host is not the name for which the client
// made the connection. That name chose the certificate, and whether the client had to
// present one. A client that connects to an address sends no name.
//
//	!(host == sni || sni == "" && host.matches(address))
//
// where host is request.host.lowerAscii().split(":")[0].
func misdirectedPolicy() *rbacconfigv3.Policy {
	const address = `^([0-9.]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?$`
	var e expressions
	requested := func() *exprv1.Expr { return e.field(e.name("request"), "host") }
	sni := func() *exprv1.Expr { return e.field(e.name("connection"), "requested_server_name") }
	host := e.call(nil, "_[_]", e.call(e.call(requested(), "lowerAscii"), "split", e.text(":")), e.number(0))
	same := e.call(nil, "_==_", host, sni())
	unnamed := e.call(nil, "_&&_", e.call(nil, "_==_", sni(), e.text("")), e.call(requested(), "matches", e.text(address)))
	return &rbacconfigv3.Policy{
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
		Condition:   e.call(nil, "!_", e.call(nil, "_||_", same, unnamed)),
		// Envoy's limit for headers also bounds the Host.
		CelConfig: &corev3.CelExpressionConfig{EnableStringFunctions: true},
	}
}

// expressions makes the nodes of a CEL expression. Each node has its own ID.
type expressions struct{ last int64 }

func (e *expressions) node() *exprv1.Expr {
	e.last++
	return &exprv1.Expr{Id: e.last}
}

func (e *expressions) name(name string) *exprv1.Expr {
	n := e.node()
	n.ExprKind = &exprv1.Expr_IdentExpr{IdentExpr: &exprv1.Expr_Ident{Name: name}}
	return n
}

func (e *expressions) field(of *exprv1.Expr, name string) *exprv1.Expr {
	n := e.node()
	n.ExprKind = &exprv1.Expr_SelectExpr{SelectExpr: &exprv1.Expr_Select{Operand: of, Field: name}}
	return n
}

// call calls a function or, with a target, a method.
func (e *expressions) call(target *exprv1.Expr, function string, args ...*exprv1.Expr) *exprv1.Expr {
	n := e.node()
	n.ExprKind = &exprv1.Expr_CallExpr{CallExpr: &exprv1.Expr_Call{Target: target, Function: function, Args: args}}
	return n
}

func (e *expressions) text(s string) *exprv1.Expr {
	n := e.node()
	n.ExprKind = &exprv1.Expr_ConstExpr{ConstExpr: &exprv1.Constant{ConstantKind: &exprv1.Constant_StringValue{StringValue: s}}}
	return n
}

func (e *expressions) number(i int64) *exprv1.Expr {
	n := e.node()
	n.ExprKind = &exprv1.Expr_ConstExpr{ConstExpr: &exprv1.Constant{ConstantKind: &exprv1.Constant_Int64Value{Int64Value: i}}}
	return n
}

// refusalReply replaces the status and body of an RBAC policy's 403.
func refusalReply(policy string, status uint32, body string) (*hcmv3.ResponseMapper, error) {
	return seam.Reply(http.StatusForbidden, seam.Details+" == '"+seam.Denied(policy)+"'", status, body)
}

// AnybodyFilter and VerifiedFilter are the names of the filters that separate hosts
// that verify clients from all others. AnybodyFilter closes such hosts on plain HTTP
// and on connections without a client certificate, including connections made before
// the host required one. VerifiedFilter is on connections whose client was verified and
// closes all other hosts. Its name ends in the name of the authorities.
const (
	AnybodyFilter  = "envoy.filters.http.rbac/anybody"
	VerifiedFilter = "envoy.filters.http.rbac/verified"
)

// certificateRequired is the name of their policy.
const certificateRequired = "client_certificate_required"

// chainCA returns the secret with the authorities that verify clients on the filter's
// chain.
func chainCA(l ir.Listener) string {
	if l.TLS == nil || len(l.TLS.Chains) == 0 || l.TLS.Chains[0].ClientCA == nil {
		return ""
	}
	return l.TLS.Chains[0].ClientCA.Secret
}

func anybodyFilter(l ir.Listener) []seam.Message {
	if chainCA(l) != "" {
		return nil
	}
	return []seam.Message{{Name: AnybodyFilter, Config: &rbacv3.RBAC{Rules: refuseAll(certificateRequired)}}}
}

func verifiedFilter(l ir.Listener) []seam.Message {
	if chainCA(l) == "" {
		return nil
	}
	return []seam.Message{{Name: verifiedBy(chainCA(l)), Config: &rbacv3.RBAC{Rules: refuseAll(certificateRequired)}}}
}

func verifiedBy(secret string) string { return VerifiedFilter + "/" + secret }

// refuseAll refuses every request with the named policy.
func refuseAll(policy string) *rbacconfigv3.RBAC { return seam.RefuseAll(policy) }

func anybodyOfHost(h *ir.Host) ([]seam.Message, error) {
	if h.ClientCA == "" {
		return nil, nil
	}
	return []seam.Message{{Name: AnybodyFilter, Config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: refuseAll(certificateRequired)}}}}, nil
}

func verifiedOfHost(h *ir.Host) ([]seam.Message, error) {
	if h.ClientCA == "" {
		return nil, nil
	}
	return []seam.Message{{Name: verifiedBy(h.ClientCA), Config: &routev3.FilterConfig{Disabled: true}}}, nil
}

// anybodyOfRoute allows a route to redirect clients to HTTPS.
func anybodyOfRoute(r *ir.Route) ([]seam.Message, error) {
	if !r.Unverified {
		return nil, nil
	}
	return []seam.Message{{Name: AnybodyFilter, Config: &routev3.FilterConfig{Disabled: true}}}, nil
}

func certificateReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	m, err := refusalReply(certificateRequired, http.StatusForbidden, "this host requires a client certificate: connect to it over https\n")
	return []*hcmv3.ResponseMapper{m}, err
}

// HSTSFilter is the name of the filter that tells browsers to use only HTTPS.
const HSTSFilter = "envoy.filters.http.header_mutation/hsts"

// hstsFilter is on the HTTPS listener only: the header must not be sent over plain HTTP
// (RFC 6797 section 7.2).
func hstsFilter(l ir.Listener) []seam.Message {
	if l.TLS == nil {
		return nil
	}
	return []seam.Message{{Name: HSTSFilter, Config: &headermutationv3.HeaderMutation{}}}
}

func hstsOfHost(h *ir.Host) ([]seam.Message, error) {
	if h.HSTS == "" {
		return nil, nil
	}
	return []seam.Message{{Name: HSTSFilter, Config: &headermutationv3.HeaderMutationPerRoute{Mutations: &headermutationv3.Mutations{
		ResponseMutations: []*mutationv3.HeaderMutation{{Action: &mutationv3.HeaderMutation_Append{
			Append: seam.SetHeader("strict-transport-security", h.HSTS),
		}}},
	}}}}, nil
}
