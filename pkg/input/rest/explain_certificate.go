package rest

import (
	"math"
	"net"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
)

// nameCertificates says where the certificates of the answers come from, and how long they last.
func (s *server) nameCertificates(r store.Reader, list []inspect.Explained) error {
	ordered := map[string]acme.Certificate{}
	if s.certificates != nil {
		for _, c := range s.certificates.List() {
			ordered[c.Host] = c
		}
	}
	for i := range list {
		namePending(&list[i].Answer, ordered)
		if list[i].TLS == nil {
			continue
		}
		for _, certificates := range [][]explain.Certificate{list[i].TLS.Certificates, list[i].TLS.Others} {
			for j := range certificates {
				if err := s.nameCertificate(r, &certificates[j], ordered); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// namePending says of a host without a certificate why the gateway has not ordered one yet.
func namePending(a *explain.Answer, ordered map[string]acme.Certificate) {
	if a.Code != explain.NoCertificate && a.Code != explain.NoListener {
		return
	}
	host := strings.ToLower(a.Request.Host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	known, is := ordered[host]
	if _, parent, ok := strings.Cut(host, "."); !is && ok {
		known, is = ordered["*."+parent]
	}
	if !is || known.State == "by_hand" {
		return
	}
	text := a.Message + "; the gateway orders one for " + known.Host + ": " + known.State
	for _, more := range []string{known.Reason, known.Advice} {
		if more != "" {
			text += ": " + more
		}
	}
	if last := len(a.Steps) - 1; last >= 0 && a.Steps[last].Message == a.Message {
		a.Steps[last].Message = text
	}
	a.Message = text
}

func (s *server) nameCertificate(r store.Reader, c *explain.Certificate, ordered map[string]acme.Certificate) error {
	c.DaysLeft = int(math.Floor(c.NotAfter.Sub(s.now()).Hours() / (24 * time.Hour).Hours()))
	host, automatic := model.AutomaticHost(c.Secret)
	if !automatic {
		last, err := r.RevisionsOf(store.RevisionQuery{Object: model.SecretKey(c.Secret), Kind: model.KindSecret}, 0, 1)
		c.Source = explain.FromSecret
		if len(last) > 0 && last[0].Actor == tlsdir.Actor {
			c.Source = explain.FromFile
		}
		return err
	}
	known := ordered[host]
	c.Source, c.Host = explain.FromAuthority, host
	if known.Placeholder {
		c.Source = explain.FromPlaceholder
	}
	c.Error, c.Advice = known.Reason, known.Advice
	return nil
}
