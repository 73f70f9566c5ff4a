package explain

import (
	"fmt"
	"net/http"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// redirect redirects the client to another URL (Utility::newUri).
func (a *Answer) redirect(s subject, r *routev3.Route) error {
	action := r.GetRedirect()
	status, err := redirectStatus(action)
	if err != nil {
		return fmt.Errorf("explaining route %q: %w", r.GetName(), err)
	}
	scheme := s.headers.get(":scheme")
	if action.GetHttpsRedirect() {
		scheme = "https"
	} else if to := action.GetSchemeRedirect(); to != "" {
		scheme = to
	}
	port := ""
	if p := action.GetPortRedirect(); p > 0 {
		port = fmt.Sprintf(":%d", p)
	}
	host := action.GetHostRedirect()
	if host == "" {
		host = s.redirectHost(scheme, port)
	}
	path, err := s.redirectPath(r)
	if err != nil {
		return err
	}
	a.Location = scheme + "://" + host + port + path
	if isForPlain(r) {
		a.endWith(Redirected, status, "redirect", fmt.Sprintf(
			"service %s is served over HTTPS only (its field Https is redirect), so the client is sent to %s with %d", a.Service, a.Location, status))
		return nil
	}
	a.endWith(Redirected, status, "redirect", fmt.Sprintf("the route sends the client to %s with %d", a.Location, status))
	return nil
}

func redirectStatus(action *routev3.RedirectAction) (int, error) {
	status, known := map[routev3.RedirectAction_RedirectResponseCode]int{
		routev3.RedirectAction_MOVED_PERMANENTLY:  http.StatusMovedPermanently,
		routev3.RedirectAction_FOUND:              http.StatusFound,
		routev3.RedirectAction_SEE_OTHER:          http.StatusSeeOther,
		routev3.RedirectAction_TEMPORARY_REDIRECT: http.StatusTemporaryRedirect,
		routev3.RedirectAction_PERMANENT_REDIRECT: http.StatusPermanentRedirect,
	}[action.GetResponseCode()]
	if !known {
		return 0, fmt.Errorf("redirect code %s is not known", action.GetResponseCode())
	}
	return status, nil
}

// redirectPath returns the path, with the query, of the redirect.
func (s subject) redirectPath(r *routev3.Route) (string, error) {
	action := r.GetRedirect()
	path, query := action.GetPathRedirect(), s.query
	if strings.Contains(path, "?") {
		return path, nil
	}
	if path == "" {
		var err error
		if path, err = rewritePath(s, r, action.GetPrefixRewrite(), action.GetRegexRewrite()); err != nil {
			return "", err
		}
	}
	if action.GetStripQuery() {
		query = ""
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path + query, nil
}

// redirectHost returns the host of the redirect when it is the request's own. The port of the redirect
// replaces the request's port, and a port that is the default of a scheme is removed with the scheme
// (processRequestHost).
func (s subject) redirectHost(scheme, port string) string {
	host := s.headers.get(authority)
	end := strings.LastIndexByte(host, ':')
	if strings.HasPrefix(host, "[") {
		if end = strings.LastIndex(host, "]:"); end >= 0 {
			end++
		}
	}
	if end < 0 {
		return host
	}
	usual := map[string]string{"http": ":80", "https": ":443"}
	from := s.headers.get("x-forwarded-proto")
	if port != "" || scheme != from && host[end:] == usual[from] {
		return host[:end]
	}
	return host
}
