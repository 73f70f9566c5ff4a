package model

// Condition says something about an object that a user should know: why it is
// not live, or not in the form that was written.
type Condition struct {
	Key Key `json:"-"`
	// Code is stable, in upper camel case, for example NoUpstream.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Proxies are the proxies on which it holds, sorted; nil means all proxies
	// of the object.
	Proxies []string `json:"-"`
}

// The codes of conditions.
const (
	// NoUpstream: a route has nothing to forward to and answers 503.
	NoUpstream = "NoUpstream"
	// NoEndpoints: a discovered upstream has nobody who could get requests.
	NoEndpoints = "NoEndpoints"
	// NoRateLimitEngine: the proxy has rates, and no engine counts.
	NoRateLimitEngine = "NoRateLimitEngine"
	// NoRates: a rate-limit filter is on a proxy that has no rates.
	NoRates = "NoRates"
	// UnknownDomain: a rate-limit filter names a domain that the proxy lacks.
	UnknownDomain = "UnknownDomain"
	// NoMatchingRate: no request can meet a rate by this descriptor.
	NoMatchingRate = "NoMatchingRate"
	// NotForwarded: a rate-limit filter is where nothing is counted.
	NotForwarded = "NotForwarded"
	// HostConflict: another service of the proxy has the host; this one is
	// left out.
	HostConflict = "HostConflict"
	// Quarantined: Envoy would refuse it; it answers 503.
	Quarantined = "Quarantined"
	// Accepted: it is a part of the configuration, and can work.
	Accepted = "Accepted"
	// Programmed: every connected Envoy that it reaches has it as it is.
	Programmed = "Programmed"
	// Rejected: an Envoy refused it.
	Rejected = "Rejected"
	// Unattached: no proxy uses it.
	Unattached = "Unattached"
	// Failing: requests for an upstream fail.
	Failing = "Failing"
	// Answering: an upstream passes its health check, or answers requests.
	Answering = "Answering"
	// UpstreamUnverified: the certificate of an upstream is not verified.
	UpstreamUnverified = "UpstreamUnverified"
	// TLSDirectory: the directory of certificates has errors.
	TLSDirectory = "TLSDirectory"
	// KubernetesUnreadable: a kind of Kubernetes objects cannot be read.
	KubernetesUnreadable = "KubernetesUnreadable"
	// KubernetesUnwritable: the conditions of Kubernetes objects cannot be written.
	KubernetesUnwritable = "KubernetesUnwritable"
	// KubernetesShared: another installation serves the same Kubernetes objects.
	KubernetesShared = "KubernetesShared"
	// NotStored: an object of Kubernetes became what the rules of the store refuse.
	NotStored = "NotStored"
	// CertificateExpires: a certificate ends within 30 days.
	CertificateExpires = "CertificateExpires"
	// CertificateExpired: a certificate has ended.
	CertificateExpired = "CertificateExpired"
	// KeyExpires: an API key ends within 7 days.
	KeyExpires = "KeyExpires"
	// KeyExpired: an API key has ended.
	KeyExpired = "KeyExpired"
	// CertificateNotForHost: a service has a certificate that is for other hosts.
	CertificateNotForHost = "CertificateNotForHost"
	// NoCertificate: a service needs a certificate and has none.
	NoCertificate = "NoCertificate"
	// CertificatePending: the gateway has not ordered an automatic certificate yet.
	CertificatePending = "CertificatePending"
	// CertificateFailing: the last attempt to get an automatic certificate failed.
	CertificateFailing = "CertificateFailing"
	// CertificateIssued: an automatic certificate was issued. It is only in events.
	CertificateIssued = "CertificateIssued"
	// CertificateTested: a test of whether a certificate could be ordered ended. It is only in events.
	CertificateTested = "CertificateTested"
	// ProviderFailing: the identity provider of a login cannot be asked, or its answer
	// cannot be used.
	ProviderFailing = "ProviderFailing"
	// LoginFailing: logins at a service failed within the last hour.
	LoginFailing = "LoginFailing"
	// NoHTTP3: a proxy cannot serve HTTP/3 although it should.
	NoHTTP3 = "NoHTTP3"
	// NoDatabase: an Envoy does not know the country or network of clients, and a filter names some.
	NoDatabase = "NoDatabase"
	// NoLogDirectory: an Envoy has no directory for a log that goes to a file, and writes it to its standard output.
	NoLogDirectory = "NoLogDirectory"
	// NotChecked: nobody knows whether an upstream answers.
	NotChecked = "NotChecked"
)
