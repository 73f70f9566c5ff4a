package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// FuzzBody reads any bytes in each encoding. Whatever is sent is an answer
// that a user can act on, or an object without a bad field.
func FuzzBody(f *testing.F) {
	const (
		plain = "application/x-www-form-urlencoded"
		multi = "multipart/form-data; boundary=b"
	)
	f.Add(plain, "Route_Name=r&Route_prefix=%2F&Route_config={}")
	f.Add(plain, "route_name=r&ROUTE_NAME=r&x=%ff&y=%00;z")
	f.Add(multi, "--b\r\nContent-Disposition: form-data; name=Route_Name; filename=x\r\n\r\nr\r\n--b--")
	f.Add(multi, "--b\r\nContent-Disposition: form-data; name=Route_Name\r\n\r\nr")
	f.Add("application/json", `{"Route_Name":"r","Route_prefix":"/","Route_config":{"match":"exact","headers":[{"name":"a"}]}}`)
	f.Add("application/json", `{"Route_config":{"a":{"b":[1,2,{"c":"\ud800","c":null}]}},"Upstream_port":1e3} x`)
	f.Add("application/json; charset=utf-8", `{"Upstream_port":"80","Upstream_name":7,"upstream_NAME":true}`)
	f.Add("application/json", `{"Filter_name":"f","Filter_type":"route_filter_ratelimit","Filter_config":{"descriptors":[{"remote_address":"x"}]}}`)
	f.Add("application/json", `{"globalconfig_name":"g","globalconfig_type":"globalconfig_ratelimit","config":"{\"domain\":\"d\",\"descriptors\":[]}"}`)
	f.Add("text/plain", "x")
	f.Fuzz(func(t *testing.T, contentType, body string) {
		sent, err := decodeBody(contentType, []byte(body))
		if err != nil {
			p, ok := errors.AsType[*problem](err)
			if !ok || p.Status != http.StatusBadRequest && p.Status != http.StatusUnsupportedMediaType || p.Detail == "" {
				t.Fatalf("answer %v", err)
			}
			return
		}
		if strings.HasPrefix(contentType, "application/json") && !json.Valid([]byte(body)) {
			t.Fatal("took what is not JSON")
		}
		checkBind(t, &model.Route{}, sent)
		checkBind(t, model.NewUpstream(), sent)
		checkBind(t, &model.Filter{}, sent)
		checkBind(t, &model.GlobalConfig{}, sent)
		checkBind(t, &model.Secret{}, sent)
	})
}

func checkBind(t *testing.T, obj model.Object, sent []form.Value) {
	t.Helper()
	errs := form.Bind(obj, sent, true)
	seen := map[string]bool{}
	for _, e := range errs {
		if e.Message == "" || seen[e.Field+e.Message] {
			t.Fatalf("error %q about field %q, of %q", e.Message, e.Field, errs)
		}
		seen[e.Field+e.Message] = true
	}
	if len(errs) > 0 {
		return
	}
	if bad := obj.Validate(); len(bad) > 0 {
		t.Fatalf("took bad fields: %v", bad)
	}
	stored, err := json.Marshal(obj)
	if err != nil || !utf8.Valid(stored) || strings.ContainsRune(string(stored), utf8.RuneError) || strings.Contains(string(stored), `\u0000`) {
		t.Fatalf("took %q, error %v", stored, err)
	}
}
