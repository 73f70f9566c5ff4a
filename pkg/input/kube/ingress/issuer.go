package ingress

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Certificate is what cert-manager makes for an Ingress with its annotations, and not for a GatewayHost.
type Certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CertificateSpec `json:"spec"`
}

// CertificateSpec has the fields of cert-manager.io/v1 that its annotations set.
type CertificateSpec struct {
	SecretName  string    `json:"secretName"`
	DNSNames    []string  `json:"dnsNames"`
	IssuerRef   IssuerRef `json:"issuerRef"`
	CommonName  string    `json:"commonName,omitempty"`
	Duration    string    `json:"duration,omitempty"`
	RenewBefore string    `json:"renewBefore,omitempty"`
}

// IssuerRef names the issuer.
type IssuerRef struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Group string `json:"group"`
}

// issuer makes the Certificates of an Ingress.
func (r *reading) issuer() {
	const own = "cert-manager.io/"
	get := func(name, absent string) string {
		if v, ok := r.Annotations[own+name]; ok {
			return v
		}
		return absent
	}
	ref := IssuerRef{get("issuer", ""), get("issuer-kind", "Issuer"), get("issuer-group", "cert-manager.io")}
	if name := get("cluster-issuer", ""); name != "" {
		ref.Name, ref.Kind = name, "ClusterIssuer"
	}
	if ref.Name == "" {
		if r.Annotations["kubernetes.io/tls-acme"] == "true" {
			r.note("kubernetes.io/tls-acme", "names no issuer: write a Certificate of cert-manager by hand")
		}
		return
	}
	for _, t := range r.Spec.TLS {
		if t.SecretName == "" || len(t.Hosts) == 0 {
			continue
		}
		c := &Certificate{Spec: CertificateSpec{
			SecretName: t.SecretName, DNSNames: t.Hosts, IssuerRef: ref,
			CommonName: get("common-name", ""), Duration: get("duration", ""), RenewBefore: get("renew-before", ""),
		}}
		c.APIVersion, c.Kind, c.Namespace, c.Name = "cert-manager.io/v1", "Certificate", r.Namespace, t.SecretName
		r.all.certificates[r.Namespace+"/"+t.SecretName] = c
	}
	known := []string{"issuer", "issuer-kind", "issuer-group", "cluster-issuer", "common-name", "duration", "renew-before"}
	for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
		if short, is := strings.CutPrefix(name, own); is && !slices.Contains(known, short) {
			r.note(name, "is not in the Certificate: add it by hand")
		}
	}
}
