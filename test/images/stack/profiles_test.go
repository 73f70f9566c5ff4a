//go:build images

package stack_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// logIn logs in at the provider of the stack, with a new browser.
func (s *stack) logIn() error {
	content, err := os.ReadFile(filepath.Join(s.dir, "pki/web/ca.crt"))
	if err != nil {
		return err
	}
	authority, err := testkit.ReadAuthority(string(content))
	if err != nil {
		return err
	}
	browser := testkit.NewBrowser(authority)
	defer browser.Close()

	address := "https://app.stack.test:" + s.ports["EDGE_TLS"] + "/private"
	page, err := browser.Open(bound(time.Minute), address)
	if err != nil {
		return err
	}
	if provider := "login.stack.test:" + s.ports["LOGIN"]; page.URL.Host != provider {
		return fmt.Errorf("%s answers %d and leads to %s, not to %s: %s", address, page.Status, page.URL.Host, provider, page.Body)
	}
	page, err = browser.LogIn(bound(time.Minute), page, "user@stack.test", s.setting("LOGIN_PASSWORD"))
	if err != nil {
		return err
	}
	if want := "hello from blue: GET /private\nuser: user@stack.test\n"; page.URL.String() != address || page.Body != want {
		return fmt.Errorf("the login leads to %s, which answers %d: %s", page.URL, page.Status, page.Body)
	}
	return nil
}

// target is a target of Prometheus.
type target struct {
	ScrapePool, Health, LastError string
	Labels                        struct{ Instance string }
}

// targets returns those of Prometheus, with their health.
func (s *stack) targets() map[string]string {
	var answer struct {
		Data struct{ ActiveTargets []target }
	}
	a := get(bound(10*time.Second), "http://127.0.0.1:"+s.ports["PROMETHEUS"]+"/api/v1/targets?state=active")
	if err := json.Unmarshal([]byte(a.body), &answer); err != nil {
		return map[string]string{"": a.body}
	}
	health := map[string]string{}
	for _, t := range answer.Data.ActiveTargets {
		health[t.Labels.Instance] = strings.TrimSpace(t.Health + " " + t.LastError)
	}
	return health
}

// sample returns the value of a query that has one.
func (s *stack) sample(query string) string {
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	a := get(bound(10*time.Second), "http://127.0.0.1:"+s.ports["PROMETHEUS"]+"/api/v1/query?query="+escape(query))
	if err := json.Unmarshal([]byte(a.body), &answer); err != nil || len(answer.Data.Result) != 1 {
		return a.body
	}
	value, _ := answer.Data.Result[0].Value[1].(string)
	return value
}
