package rest

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) addSecret() {
	k := kind{kind: model.KindSecret, base: "/secret", at: secretAt}
	s.addObjects(k)
	// Both take both, so that a pair can be replaced in one call.
	s.addUpload(k, "key", "Secret_key", "Secret_cert")
	s.addUpload(k, "cert", "Secret_cert", "Secret_key")
	s.addLinked(linked{
		path: "/secret/:secret/service", kind: model.KindService, link: model.KindServiceSecret,
		from: secretAt, target: model.Object.Owner,
		links: func(n names) store.Query { return store.Query{Secret: n[model.KindSecret]} },
	})
	for _, user := range []model.Kind{model.KindUpstream, model.KindFilter, model.KindGlobalConfig} {
		s.addUsers("/secret/:secret/"+string(user), user, secretAt)
	}
}

func secretAt(n names) []model.Key { return []model.Key{model.SecretKey(n[model.KindSecret])} }

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
