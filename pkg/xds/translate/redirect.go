package translate

import (
	"net/http"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func redirectAction(r *ir.Redirect, m ir.Match) *routev3.RedirectAction {
	out := &routev3.RedirectAction{
		HostRedirect: r.Host,
		PortRedirect: uint32(r.Port), //nolint:gosec // bounded by validation
		ResponseCode: redirectCode(r.Status),
		StripQuery:   r.StripQuery,
	}
	if strings.Contains(r.Host, ":") {
		out.HostRedirect = "[" + r.Host + "]"
	}
	switch r.Scheme {
	case "":
	case "https":
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_HttpsRedirect{HttpsRedirect: true}
	default:
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: r.Scheme}
	}
	switch prefix, regex := rewritePath(r.Rewrite, m); {
	case r.Path != "":
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: r.Path}
	case regex != nil:
		out.PathRewriteSpecifier = &routev3.RedirectAction_RegexRewrite{RegexRewrite: regex}
	case prefix != "" && m.PathKind == ir.PathTemplate:
		// Envoy would truncate the path to the length of the template.
		out.PathRewriteSpecifier = &routev3.RedirectAction_PathRedirect{PathRedirect: prefix}
	case prefix != "":
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: prefix}
	}
	return out
}

func redirectCode(status int) routev3.RedirectAction_RedirectResponseCode {
	switch status {
	case http.StatusFound:
		return routev3.RedirectAction_FOUND
	case http.StatusSeeOther:
		return routev3.RedirectAction_SEE_OTHER
	case http.StatusTemporaryRedirect:
		return routev3.RedirectAction_TEMPORARY_REDIRECT
	case http.StatusPermanentRedirect:
		return routev3.RedirectAction_PERMANENT_REDIRECT
	}
	return routev3.RedirectAction_MOVED_PERMANENTLY
}
