package rest

import "github.com/gatehouse-gateway/gatehouse/pkg/core/model"

// secretView is what reads show of a secret: never key or value (rest-api.md,
// "secret").
// Issuer and HostNames are read from the certificate.
type secretView struct {
	ID          int64       `json:"secret_id"`
	Name        string      `json:"secret_name"`
	Type        string      `json:"secret_type"`
	SNI         string      `json:"secret_sni"`
	Fingerprint string      `json:"fingerprint"`
	Subject     string      `json:"subject"`
	Issuer      string      `json:"issuer"`
	HostNames   []string    `json:"host_names"`
	NotAfter    *model.Time `json:"not_after"`
	Tags        model.Tags  `json:"tags"`
	CreateTS    model.Time  `json:"create_ts"`
	UpdateTS    model.Time  `json:"update_ts"`
}

func viewSecret(o *model.Secret) secretView {
	v := secretView{
		ID: o.ID, Name: o.Name, Type: o.Type, SNI: o.SNI, Fingerprint: o.Fingerprint, Subject: o.Subject,
		HostNames: []string{}, NotAfter: o.NotAfter, Tags: o.Tags, CreateTS: o.CreateTS, UpdateTS: o.UpdateTS,
	}
	if leaf := o.Leaf(); leaf != nil {
		v.Issuer, v.HostNames = leaf.Issuer.String(), notNull(model.NamesOf(leaf))
	}
	return v
}
