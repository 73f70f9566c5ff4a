package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// listenerSetting is a flag of standalone that is a field of its proxy object.
type listenerSetting struct {
	// flag is its name, and field the key of the value in the log.
	flag, field string
	// of returns a pointer to it in a proxy object: *int or *string.
	of func(*model.Proxy) any
}

func listenerSettings() []listenerSetting {
	return []listenerSetting{
		{"http-port", "http_port", func(p *model.Proxy) any { return &p.HTTPPort }},
		{"https-port", "https_port", func(p *model.Proxy) any { return &p.HTTPSPort }},
		{"listen-ip", "listen_ip", func(p *model.Proxy) any { return &p.ListenIP }},
		{"trusted-hops", "trusted_hops", func(p *model.Proxy) any { return &p.TrustedHops }},
	}
}

// valueOf is the value in a proxy object.
func (s listenerSetting) valueOf(p *model.Proxy) any {
	return reflect.ValueOf(s.of(p)).Elem().Interface()
}

// newProxy returns the defaults of a new proxy object: the gateway's own proxy gets
// those of the flags (rest-api.md, "proxy").
func newProxy(cfg config.Config, name string) *model.Proxy {
	p := model.NewProxy()
	if name == cfg.Proxy {
		p.HTTPPort, p.HTTPSPort, p.ListenIP, p.TrustedHops = cfg.HTTPPort, cfg.HTTPSPort, cfg.ListenIP, cfg.TrustedHops
	}
	return p
}

// adoptSettings writes the listener settings that were set explicitly to the gateway's
// own proxy object, so that the API shows the settings in effect. It writes only those
// that differ from the last start. A start with the same flags therefore changes
// nothing, even if the API or a document has moved the listener since (ADR 0014); the
// log then says where the listener is. It returns the object, or what it will be once
// it is created.
func adoptSettings(ctx context.Context, s interface {
	store.Store
	store.Notes
}, cfg config.Config, log *slog.Logger) (own *model.Proxy, err error) {
	note := "flags of proxy " + cfg.Proxy
	flags := newProxy(cfg, cfg.Proxy)
	given := map[string]string{}
	for _, setting := range listenerSettings() {
		if cfg.Explicit[setting.flag] {
			given[setting.flag] = fmt.Sprint(setting.valueOf(flags))
		}
	}
	remembered, err := s.Note(ctx, note)
	if err != nil {
		return nil, err
	}
	before := map[string]string{}
	if remembered != "" {
		if err := json.Unmarshal([]byte(remembered), &before); err != nil {
			return nil, fmt.Errorf("reading the note %q of the database: %w", note, err)
		}
	}
	found := false
	_, err = s.Write(ctx, store.Origin{Actor: "standalone", Request: "listener settings"}, func(w store.Writer) error {
		stored, err := store.Get[*model.Proxy](w, model.ProxyKey(cfg.Proxy))
		if model.IsKind(err, model.NotFound) {
			own, found = flags, false
			return nil
		}
		if err != nil {
			return err
		}
		own, found = stored, true
		for _, setting := range listenerSettings() {
			if value, ok := given[setting.flag]; ok && value != before[setting.flag] {
				reflect.ValueOf(setting.of(own)).Elem().Set(reflect.ValueOf(setting.valueOf(flags)))
			}
		}
		return w.Replace(own)
	})
	if err != nil {
		return nil, err
	}
	if found {
		logListenerDifference(ctx, log, own, flags)
	}
	// This comes last: a start that failed before would otherwise forget to adopt them.
	text, err := json.Marshal(given)
	if err != nil || string(text) == remembered {
		return own, err
	}
	return own, s.SetNote(ctx, note, string(text))
}

// logListenerDifference logs where the stored listener differs from the flags.
func logListenerDifference(ctx context.Context, log *slog.Logger, own, flags *model.Proxy) {
	attrs := []any{"proxy", own.Name}
	for _, setting := range listenerSettings() {
		if is, flag := setting.valueOf(own), setting.valueOf(flags); is != flag {
			attrs = append(attrs, setting.field, is, setting.field+"_flag", flag)
		}
	}
	if len(attrs) > 2 {
		log.InfoContext(ctx, "the listener is not where the flags say, but where the configuration says", attrs...)
	}
}
