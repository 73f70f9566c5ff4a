package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// API calls the REST API at URL, http://HOST:PORT. Each call uses its own connection,
// so that a restart of the program does not show.
type API struct {
	URL string
	// Socket is the path of a Unix socket to call instead of the URL's host.
	Socket string
}

// Answer is an HTTP answer, read in full.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request. If contentType is empty, it sends no such header.
func (a API) Do(ctx context.Context, method, path, contentType, body string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("calling %s %s: %w", method, path, err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return a.Send(req)
}

// Get sends a GET request.
func (a API) Get(ctx context.Context, path string) (Answer, error) {
	return a.Do(ctx, http.MethodGet, path, "", "")
}

// Delete sends a DELETE request.
func (a API) Delete(ctx context.Context, path string) (Answer, error) {
	return a.Do(ctx, http.MethodDelete, path, "", "")
}

// Post sends a form with fields of the form Name=value; without any, an empty body.
func (a API) Post(ctx context.Context, path string, fields ...string) (Answer, error) {
	if len(fields) == 0 {
		return a.Do(ctx, http.MethodPost, path, "", "")
	}
	form := url.Values{}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		form.Add(name, value)
	}
	return a.Do(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", form.Encode())
}

// Send sends one request on its own connection and follows no redirect.
func Send(req *http.Request) (Answer, error) { return API{}.Send(req) }

// Send sends one request, through the socket if Socket is set.
func (a API) Send(req *http.Request) (Answer, error) {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	if a.Socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", a.Socket)
		}
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return Answer{}, fmt.Errorf("reading the answer to %s %s: %w", req.Method, req.URL, err)
	}
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}, nil
}
