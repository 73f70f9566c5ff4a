package standalone

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// call is a request that can be sent, and shown as a curl line.
type call struct {
	url  string
	form []string
	// post makes it a POST without a body; a call with a form is always a POST.
	post bool
	// host is the Host header, if it is not that of the URL.
	host string
	// token is sent with the call, and tokenText is shown in its line; empty means
	// none.
	token, tokenText string
}

// String returns the curl line.
func (c call) String() string {
	words := []string{"curl", "-sS"}
	if c.post {
		words = append(words, "-X", "POST")
	}
	if c.host != "" {
		words = append(words, "-H", "'Host: "+c.host+"'")
	}
	if c.token != "" {
		words = append(words, "-H", `"Authorization: Bearer `+c.tokenText+`"`)
	}
	for _, field := range c.form {
		if strings.Contains(field, "*") {
			field = "'" + field + "'"
		}
		words = append(words, "-d", field)
	}
	return strings.Join(append(words, c.url), " ")
}

func (c call) do(ctx context.Context) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	method, payload := http.MethodGet, url.Values{}
	if c.post || c.form != nil {
		method = http.MethodPost
	}
	for _, field := range c.form {
		name, text, _ := strings.Cut(field, "=")
		payload.Set(name, text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(payload.Encode()))
	if err != nil {
		return 0, "", err
	}
	req.Host = c.host
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, strings.TrimSpace(string(text)), errors.Join(err, resp.Body.Close())
}
