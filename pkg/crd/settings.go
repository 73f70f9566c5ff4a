package crd

import (
	"cmp"
	"net/netip"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// number is a number in the settings of a backend, with the corresponding field of an
// upstream.
type number struct {
	setting **int32
	field   *int
}

// numbers returns those of s, in which every part must be set, and of u.
func numbers(s *gatewayv1.BackendSettings, u *model.Upstream) []number {
	h, c, l, o := s.HealthCheck, s.Connection, s.Limits, s.Outlier
	return []number{
		{&h.IntervalSeconds, &u.HCIntervalSeconds}, {&h.TimeoutSeconds, &u.HCTimeoutSeconds},
		{&h.UnhealthyThreshold, &u.HCUnhealthyThresholdCount}, {&h.HealthyThreshold, &u.HCHealthyThresholdCount},
		{&c.ConnectTimeoutSeconds, &u.ConnectTimeoutSeconds}, {&c.IdleTimeoutSeconds, &u.IdleTimeoutSeconds},
		{&c.KeepaliveIntervalSeconds, &u.KeepaliveIntervalSeconds},
		{&l.MaxConnections, &u.MaxConnections}, {&l.MaxPending, &u.MaxPending},
		{&l.MaxRequests, &u.MaxRequests}, {&l.MaxRetries, &u.MaxRetries},
		{&l.RetryBudgetPercent, &u.RetryBudgetPercent}, {&l.RetryBudgetMinCount, &u.RetryBudgetMinCount},
		{&o.Threshold, &u.OutlierThresholdCount}, {&o.EjectionSeconds, &u.OutlierEjectionSeconds},
		{&s.PanicThresholdPercent, &u.PanicThresholdPercent},
	}
}

// settingsOf returns the settings of an upstream that are not the defaults. secret returns the
// reference to a Secret.
func settingsOf(u *model.Upstream, secret func(name string) *gatewayv1.SecretReference) gatewayv1.BackendSettings {
	s := gatewayv1.BackendSettings{
		TLS: &gatewayv1.BackendTLS{SubjectName: u.ValidationSubjectName, Insecure: u.TLSInsecure}, HealthCheck: &gatewayv1.HealthCheck{Host: u.HCHost},
		Connection: &gatewayv1.Connection{}, Limits: &gatewayv1.Limits{}, Outlier: &gatewayv1.Outlier{},
	}
	standard := model.NewUpstream()
	defaults := numbers(&s, standard)
	for i, n := range numbers(&s, u) {
		if *n.field != *defaults[i].field {
			*n.setting = new(int32)
			**n.setting = int32(*n.field) //nolint:gosec // every field is at most a million
		}
	}
	if u.Protocol != standard.Protocol {
		s.Protocol = u.Protocol
	}
	if u.Strategy != standard.Strategy {
		s.Strategy = u.Strategy
	}
	if u.HCPath != "" {
		s.HealthCheck.Path = new(gatewayv1.URLPath)
		*s.HealthCheck.Path = gatewayv1.URLPath(u.HCPath)
	}
	if !u.IsDNSName() && u.SpeaksTLS() {
		// In the cluster the default is the name of the Service.
		s.TLS.SubjectName = cmp.Or(u.ValidationSubjectName, u.IP)
	}
	s.TLS.CASecret, s.TLS.ClientSecret = secret(u.ValidationCACertificate), secret(u.ClientCertificate)
	prune(&s.TLS)
	prune(&s.HealthCheck)
	prune(&s.Connection)
	prune(&s.Limits)
	prune(&s.Outlier)
	return s
}

// prune removes a part without settings.
func prune[T comparable](part **T) {
	var nothing T
	if **part == nothing {
		*part = nil
	}
}

// settle applies the settings of a backend to an upstream. secret returns the name of a
// secret.
func settle(u *model.Upstream, s gatewayv1.BackendSettings, secret func(*gatewayv1.SecretReference) string) {
	tls := cmp.Or(s.TLS, &gatewayv1.BackendTLS{})
	s.HealthCheck, s.Connection = cmp.Or(s.HealthCheck, &gatewayv1.HealthCheck{}), cmp.Or(s.Connection, &gatewayv1.Connection{})
	s.Limits, s.Outlier = cmp.Or(s.Limits, &gatewayv1.Limits{}), cmp.Or(s.Outlier, &gatewayv1.Outlier{})
	for _, n := range numbers(&s, u) {
		if *n.setting != nil {
			*n.field = int(**n.setting)
		}
	}
	u.Protocol, u.Strategy = cmp.Or(s.Protocol, u.Protocol), cmp.Or(s.Strategy, u.Strategy)
	u.HCHost = s.HealthCheck.Host
	if s.HealthCheck.Path != nil {
		u.HCPath = string(*s.HealthCheck.Path)
	}
	u.TLSInsecure, u.ValidationSubjectName = tls.Insecure, tls.SubjectName
	if tls.SubjectName == u.IP && !u.IsDNSName() {
		u.ValidationSubjectName = "" // its default
	}
	u.ValidationCACertificate, u.ClientCertificate = secret(tls.CASecret), secret(tls.ClientSecret)
}

// sameAddress reports whether two texts are the same address.
func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX == nil && errY == nil {
		return x == y
	}
	return canonicalHost(a) == canonicalHost(b)
}
