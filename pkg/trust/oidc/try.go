package oidc

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// replyBytes bounds what is read of an answer to Page or Token.
const replyBytes = 64 << 10

// Reply is the answer to a request as a browser or an Envoy would send it.
type Reply struct {
	Status int
	// Location is the target of a redirect; nil means that it is none.
	Location *url.URL
	// Body is the beginning of the body.
	Body []byte
}

// Beside returns the upstream for a URL: nil if the URL is not at the host of the
// endpoint that the upstream is for.
func (v *Via) Beside(endpoint, at string) *Via {
	if v == nil || !sameHost(endpoint, at) {
		return nil
	}
	return v
}

// Page requests a page as a browser without cookies does, and follows no redirect. An
// error is a sentence that follows the name of the page.
func (c *Client) Page(ctx context.Context, at string, via *Via) (Reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return Reply{}, err
	}
	req.Header.Set("Accept", "text/html,*/*")
	return c.try(req, via)
}

// Token posts a form to a token endpoint, with user and password in Authorization
// unless user is empty. An error is a sentence that follows the name of the endpoint.
func (c *Client) Token(
	ctx context.Context, at string, form url.Values, user, password string, via *Via,
) (Reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return Reply{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	return c.try(req, via)
}

func (c *Client) try(req *http.Request, via *Via) (Reply, error) {
	u := *req.URL
	transport, err := c.transport(&u, via)
	if err != nil {
		return Reply{}, err
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(req.Context(), c.opts.Timeout)
	defer cancel()
	req = req.WithContext(ctx)
	req.Host, req.URL = req.URL.Host, &u
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "gatehouse")
	res, err := transport.RoundTrip(req)
	if err != nil {
		return Reply{}, c.explain(err, &u, via)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, replyBytes))
	if err != nil {
		return Reply{}, c.explain(err, &u, via)
	}
	r := Reply{Status: res.StatusCode, Body: body}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		if to, err := res.Location(); err == nil {
			r.Location = to
		}
	}
	return r, nil
}

// IsRefused reports whether an error says that the rules forbid the request.
func IsRefused(err error) bool {
	_, refused := errors.AsType[refusal](err)
	return refused
}
