package scrape

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// maxBody is how many bytes of a response are read. About 300,000 limits
	// fit.
	maxBody = 256 << 20
	// maxLine is the length of the longest line. maxLines is how many bytes of
	// the lines of some domains are kept: about 25,000 limits.
	maxLine, maxLines = 1 << 20, 16 << 20

	// anyMetric is the prefix of the names of the engine's metrics, limitMetric
	// that of limits' metrics.
	anyMetric, limitMetric = "ratelimit_service_", "ratelimit_service_rate_limit_"
)

// These are the metrics of a limit that are read.
const (
	hits = iota
	near
	over
	shadow
	kinds
)

// names returns the ends of their names.
func names() [kinds]string {
	return [...]string{hits: "total_hits", near: "near_limit", over: "over_limit", shadow: "shadow_mode"}
}

// values are the numbers of a series.
type values [kinds]uint64

// fetch reads the metrics of an engine at one of the addresses of its URL's
// host, for the domains whose names begin with one of prefixes.
func fetch(ctx context.Context, rawURL, address string, prefixes []string) (map[series]values, error) {
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, causeOf(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	lines, err := linesOf(response.Body, prefixes)
	if err != nil {
		return nil, causeOf(err)
	}
	return parse(lines)
}

// causeOf returns the error without the URL, which is shown next to it.
func causeOf(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", timeout)
	}
	return err
}

// linesOf keeps the lines about the limits of some domains. There may be very
// many others.
func linesOf(body io.Reader, prefixes []string) (*bytes.Buffer, error) {
	limited := &io.LimitedReader{R: body, N: maxBody}
	scanner := bufio.NewScanner(limited)
	scanner.Buffer(nil, maxLine)
	var lines bytes.Buffer
	isEngine := false
	for scanner.Scan() {
		line := scanner.Bytes()
		isEngine = isEngine || bytes.HasPrefix(line, []byte(anyMetric))
		if !bytes.HasPrefix(line, []byte(limitMetric)) || !slices.ContainsFunc(prefixes, func(p string) bool {
			return bytes.Contains(line, []byte(`domain="`+p)) // a quote in a value has a backslash before it
		}) {
			continue
		}
		lines.Write(line)
		lines.WriteByte('\n')
		if lines.Len() > maxLines {
			return nil, errors.New("its metrics of these limits are too many")
		}
	}
	switch {
	case scanner.Err() != nil:
		return nil, scanner.Err()
	case limited.N == 0:
		return nil, errors.New("its metrics are too many")
	case !isEngine:
		return nil, errors.New("these are not the metrics of a rate-limit engine; " +
			"its setting PROMETHEUS_ADDR says where they are")
	}
	return &lines, nil
}

// parse groups the numbers by series.
func parse(lines io.Reader) (map[series]values, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(lines)
	if err != nil {
		return nil, fmt.Errorf("reading its metrics: %w", err)
	}
	sums := map[series]values{}
	for kind, name := range names() {
		for _, m := range families[limitMetric+name].GetMetric() {
			var s series
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "domain":
					s.domain = l.GetValue()
				case "key1":
					s.key1 = l.GetValue()
				case "key2":
					s.key2 = l.GetValue()
				}
			}
			v := sums[s]
			v[kind] += uint64(max(0, m.GetUntyped().GetValue())) // the lines have no types
			sums[s] = v
		}
	}
	return sums, nil
}
