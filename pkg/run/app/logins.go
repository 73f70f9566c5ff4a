package app

import (
	"log/slog"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/logins"
)

// loginWatch reports failed logins, as the own Envoy logs them, and fetches keys that the Envoy lacks.
type loginWatch struct {
	counts   logins.Counts
	registry *status.Registry
	log      *slog.Logger
	// refresh asks an identity provider for its keys again.
	refresh func(model.Key)
	now     func() time.Time
}

// handleLine handles a line of an Envoy. Anybody can send a token with an unknown key: the fetches that follow
// have their own bound (providers.Times.Apart). Each reason of each service is reported at most once a
// minute, however many logins fail.
func (w *loginWatch) handleLine(line []byte) {
	if filter, ok := logins.ReadUnknownKey(line); ok {
		w.refresh(filter)
		return
	}
	f, ok := logins.Read(line)
	if !ok {
		return
	}
	fresh, more := w.counts.Add(f, w.now())
	if f.Reason.Code == logins.UnknownKey {
		w.refresh(f.Login)
	}
	if !fresh {
		return
	}
	w.log.Warn("login failed", "service", f.Service, "login", f.Login.Path(), "code", f.Reason.Code,
		"reason", f.Reason.Message,
		"request_id", f.RequestID, "more", more)
	w.registry.RecordLogin(model.Condition{
		Key: model.ServiceKey(f.Service), Code: f.Reason.Code, Message: f.Reason.Message,
	})
}

func (w *loginWatch) conditions() []model.Condition { return w.counts.Conditions(w.now()) }
