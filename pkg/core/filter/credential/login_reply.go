package credential

import (
	"html"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// noSession, providerError and invalidLogin are how Envoy's details begin if a login refuses a request.
func noSession() []string {
	return []string{"Unauthorized, and redirecting", "Failed to refresh the access token, and redirecting"}
}

const providerError = "OAuth server returned an error"

func invalidLogin() []string {
	return []string{"Code or state", "State ", "CSRF ", "Malformed oauth", "Code verifier", "Failed to decrypt"}
}

// loginFailed are all of these, and those of a login that could not be completed.
func loginFailed() []string {
	return slices.Concat(noSession(), invalidLogin(), []string{providerError, "OAuth flow failed", "OAuth request failed"})
}

// notLoggedIn is the condition that a request has no session and cannot be redirected to a login.
func notLoggedIn() string {
	return seam.Begins(noSession()...)
}

// unverified is the condition that the id_token is invalid. notAllowed is the condition that it lacks a
// claim: of all RBAC filters, only claimsFilter refuses without a policy.
func unverified() string { return seam.Begins("jwt_authn_access_denied") }

const notAllowed = seam.Details + " == 'rbac_access_denied_matched_policy[none]'"

// ofOthers is the condition that a response is not a login's: it is a route's, an authorization server's,
// that of a filter for keys or passwords, or an external processor's, which has no details.
func ofOthers() string {
	return seam.Begins("via_upstream", "direct_response", "ext_") + " || " + ofCredentials + " || " +
		seam.Details + " == ''"
}

// loginReply is what a client receives when a login stops its request.
type loginReply struct {
	// when is a CEL condition.
	when string
	// title and what are for people. problem is for programs.
	title, what, problem string
}

// loginReplyTexts returns the replies. The first one whose condition is true is used.
func loginReplyTexts() []loginReply {
	const forAdmin = " If it happens again, tell the administrator of this site the request ID."
	return []loginReply{
		{
			notLoggedIn(), "You are not logged in",
			"Your session has ended, or you have not logged in yet. Log in and try again.",
			"the request has no valid session, and is not one that a browser can be sent to log in with: " +
				"log in with a browser first",
		},
		{
			seam.Begins(providerError), "You are not logged in",
			"The login was canceled, or the identity provider refused it. Try again." + forAdmin,
			"the identity provider ended the login with an error",
		},
		{
			seam.Begins(invalidLogin()...),
			"This login is no longer valid",
			"It took too long, began in another browser, or is already complete. Try again." + forAdmin,
			"the answer of the identity provider does not belong to a login of this client",
		},
		{
			unverified(), "Your login cannot be verified", "Your session may have ended. Try again." + forAdmin,
			"the id_token of the session cannot be verified",
		},
		{
			notAllowed, "You have no access",
			"You are logged in, but your account may not use this site. Ask its administrator for access.",
			"the account does not have the claims that are required",
		},
		{
			"true", "The login failed",
			"This site could not complete the login with the identity provider. Try again in a moment." + forAdmin,
			"the login could not be completed with the identity provider",
		},
	}
}

// chosen is a format for the text of the first reply whose condition is true.
func chosen(text func(loginReply) string) string {
	list := loginReplyTexts()
	last := len(list) - 1
	expression := "'" + text(list[last]) + "'"
	for _, r := range slices.Backward(list[:last]) {
		expression = r.when + " ? '" + text(r) + "' : " + expression
	}
	return "%CEL(" + expression + ")%"
}

// loginPage is a page without styles, scripts and references, so that no browser policy (CSP) blocks it. It
// does not redirect.
func loginPage() string {
	title := chosen(func(r loginReply) string { return html.EscapeString(r.title) })
	return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>` + title + `</title>
</head>
<body>
<h1>` + title + `</h1>
<p>` + chosen(func(r loginReply) string { return html.EscapeString(r.what) }) + `</p>
<p><a href="/">Try again</a></p>
<p>Request ID: <code>` + seam.RequestID + `</code></p>
</body>
</html>
`
}
