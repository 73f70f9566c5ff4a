package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// pageSize is the most that the server gives at once.
const pageSize = 1000

// Elements returns what is below the one key of an answer's data, for example
// the elements of {"core_db_upstream":[...]}: the word in the key is a setting
// of the server.
func (a Answer) Elements() ([]json.RawMessage, error) {
	var data map[string][]json.RawMessage
	if err := json.Unmarshal(a.Data, &data); err != nil || len(data) != 1 {
		return nil, fmt.Errorf("the answer has no list below \"data\"; does the server have another version?")
	}
	for _, list := range data {
		return list, nil
	}
	return nil, nil
}

// List reads a list over all its pages, or the first limit elements if limit is
// not 0.
func (c *Client) List(ctx context.Context, path string, query url.Values, limit int) ([]json.RawMessage, error) {
	q := url.Values{}
	for k, v := range query {
		q[k] = v
	}
	size := pageSize
	if limit > 0 {
		size = min(size, limit)
	}
	q.Set("limit", strconv.Itoa(size))
	all := []json.RawMessage{}
	for {
		a, err := c.Do(ctx, Request{Method: http.MethodGet, Path: path, Query: q})
		if err != nil {
			return nil, err
		}
		page, err := a.Elements()
		if err != nil {
			return nil, fmt.Errorf("reading GET %s: %w", path, err)
		}
		all = append(all, page...)
		if limit > 0 && len(all) >= limit {
			return all[:limit], nil
		}
		next, err := url.ParseQuery(a.next)
		if err != nil || a.next == "" {
			return all, nil
		}
		if next.Get("after") == q.Get("after") {
			return nil, fmt.Errorf("reading GET %s: the server names the same page as the next one", path)
		}
		q.Set("after", next.Get("after"))
	}
}

// One reads one object.
func (c *Client) One(ctx context.Context, path string) (json.RawMessage, error) {
	object, _, err := c.OneWithETag(ctx, path)
	return object, err
}

// OneWithETag reads one object, and the ETag that names its state for If-Match.
func (c *Client) OneWithETag(ctx context.Context, path string) (object json.RawMessage, etag string, err error) {
	a, err := c.Do(ctx, Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return nil, "", err
	}
	list, err := a.Elements()
	if err != nil {
		return nil, "", fmt.Errorf("reading GET %s: %w", path, err)
	}
	if len(list) != 1 {
		return nil, "", fmt.Errorf("reading GET %s: expected one object, got %d", path, len(list))
	}
	return list[0], a.ETag, nil
}
