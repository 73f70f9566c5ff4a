package rest

import "github.com/gatehouse-gateway/gatehouse/pkg/model"

// secretView is what reads show of a secret: never key or value (rest-api.md,
// "secret").
type secretView struct {
	ID          int64       `json:"secret_id"`
	Name        string      `json:"secret_name"`
	Type        string      `json:"secret_type"`
	SNI         string      `json:"secret_sni"`
	Fingerprint string      `json:"fingerprint"`
	Subject     string      `json:"subject"`
	NotAfter    *model.Time `json:"not_after"`
	Tags        model.Tags  `json:"tags"`
	CreateTS    model.Time  `json:"create_ts"`
	UpdateTS    model.Time  `json:"update_ts"`
}

func viewSecret(o *model.Secret) secretView {
	return secretView{o.ID, o.Name, o.Type, o.SNI, o.Fingerprint, o.Subject, o.NotAfter, o.Tags, o.CreateTS, o.UpdateTS}
}
