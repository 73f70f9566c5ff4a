package form_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// plainSealer seals without a key.
type plainSealer struct{}

func (plainSealer) Seal(plain, place string) (string, error) {
	return model.SealedPrefix + base64.RawURLEncoding.EncodeToString([]byte(place+"\n"+plain)), nil
}

func (plainSealer) Unseal(sealed, place string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(sealed, model.SealedPrefix))
	plain, ok := strings.CutPrefix(string(b), place+"\n")
	if err != nil || !ok {
		return "", &model.Error{Kind: model.Invalid, Message: "was sealed elsewhere"}
	}
	return plain, nil
}

// FuzzFilter reads any text as the JSON of each type of filter and global config. A
// valid one can be sealed and shown, and what is shown can be written back.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`{}`, ``, `[]`, `{"descriptors":[{"remote_address":"x"}]}`, `{"descriptors":[{"generic_key":{"descriptor_value":"d"}},{"request_headers":{"header_name":"x","descriptor_key":"y"}}]}`,
		`{"domain":"d","descriptors":{"descriptors":[{"remote_address":"x"}]}}`, `{"domain":"d","descriptors":[{"key":"k","rate_limit":{"unit":"second","requests_per_unit":4294967295},"descriptors":[{"key":"l","shadow_mode":true}]}]}`,
		`{"client_id":"c","client_secret":"s","redirect_uri":"/cb","cookie_secret":"hmac","issuer":"https://id.example"}`,
		`{"client_id":"c","client_secret":"<redacted>","redirect_uri":"/cb","cookie_secret":"hmac","token_endpoint":"https://id.example/t","authorization_endpoint":"https://id.example/a","upstream":"idp"}`,
		`{"client_id":"sealed:v1:AA","client_secret":"sealed:v1:AA","redirect_uri":"/","cookie_secret":"h","issuer":"https://i"}`, `{"descriptors":[{"remote_address":"sealed:v1:x"}]}`,
		`{"client_secret":"a","CLIENT_SECRET":"b"}`, `{"client_secret":{"client_secret":"x"}}`, `{"a":1e999,"b":"\ud800"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []model.Kind{model.KindFilter, model.KindGlobalConfig} {
			for _, typ := range []string{"route_filter_ratelimit", "http_filter_oidc", "globalconfig_ratelimit", "globalconfig_oauth"} {
				checkConfig(t, kind, typ, text)
			}
		}
	})
}

func checkConfig(t *testing.T, kind model.Kind, typ, text string) {
	t.Helper()
	made := func(config string) model.Confidential {
		obj := model.New(kind)
		fields := form.Fields(kind)
		var sent []form.Value
		for i, value := range []string{"name", typ, config} {
			sent = append(sent, form.Value{Name: fields[i].Name, Shape: form.IsText, Text: value})
		}
		if bad := form.Bind(obj, sent, true); len(bad) > 0 {
			return nil
		}
		return obj.(model.Confidential)
	}
	stored := made(text)
	if stored == nil {
		return
	}
	for _, key := range model.Uses(stored.(model.Object)) {
		if key.Kind == "" || key.Name() == "" {
			t.Fatalf("uses %v", key)
		}
	}
	if err := stored.Seal(plainSealer{}, nil); err != nil {
		if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != model.Invalid || len(e.Fields) == 0 {
			t.Fatalf("sealing: %v", err)
		}
		return
	}
	before := configOf(t, stored)
	shown := configOf(t, stored.Redact())
	if strings.Contains(shown, `"`+model.SealedPrefix) {
		t.Fatalf("shows %s", shown)
	}
	again := made(shown)
	if again == nil {
		t.Fatalf("does not take back %s", shown)
	}
	if err := again.Seal(plainSealer{}, stored.(model.Object)); err != nil {
		t.Fatalf("does not take back %s: %v", shown, err)
	}
	if after := configOf(t, again); after != before {
		t.Fatalf("writing back what is shown makes %s of %s", after, before)
	}
}

func configOf(t *testing.T, obj any) string {
	t.Helper()
	var config model.JSON
	switch o := obj.(type) {
	case *model.Filter:
		config = o.Config
	case *model.GlobalConfig:
		config = o.Config
	}
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
