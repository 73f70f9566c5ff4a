package seam

import "github.com/gatehouse-gateway/gatehouse/pkg/core/model"

// These filters say in the request's metadata who the client is, for later filters and the access log.
const (
	// TokenFilter has the claims of a verified token under Claims.
	TokenFilter = "envoy.filters.http.jwt_authn"
	Claims      = "id_token"
	// KeyFilter has the client of an API key under User.
	KeyFilter = "envoy.filters.http.basic_auth/key"
	User      = "username"
	// Consumer finds the consumer: its name is under ConsumerName, its groups, with commas between them, under
	// ConsumerGroups.
	Consumer       = "envoy.filters.http.lua/consumer"
	ConsumerName   = "name"
	ConsumerGroups = "groups"
)

// ConsumerFormat is the format of logs and spans for what is known of the consumer: model.RecordedName, or RecordedGroups.
// Neither has a character that could break a line.
func ConsumerFormat(which string) string {
	name := ConsumerName
	if which == model.RecordedGroups {
		name = ConsumerGroups
	}
	return "%DYNAMIC_METADATA(" + Consumer + ":" + name + "):256%"
}
