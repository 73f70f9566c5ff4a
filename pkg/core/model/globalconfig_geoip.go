package model

// GeoIPConfig tells backends where clients are, in headers. Those of clients are removed, on all routes, also by an
// Envoy without a database. If several global configs of the type apply to a proxy, the first one by name does. A
// change of it changes the listeners.
// +page=ipaccess.md
// +minProperties=1
// +example={country_header: x-country-code, asn_header: x-asn}
type GeoIPConfig struct {
	// The header for the country of the client, as the code of ISO 3166-1. A request of an unknown country has none.
	CountryHeader string `json:"country_header,omitempty"`
	// The header for the number of the autonomous system of the client.
	ASNHeader string `json:"asn_header,omitempty"`
}

func readGeoIP(v *validator, at, _ string, config JSON) Spec {
	var c GeoIPConfig
	if !v.decode(at, config, &c) {
		return &c
	}
	if c == (GeoIPConfig{}) {
		v.add(at, `names no header; set country_header or asn_header, such as {"country_header":"x-country-code"}`)
	}
	seen := map[string]bool{}
	for _, h := range []struct{ field, name string }{{"country_header", c.CountryHeader}, {"asn_header", c.ASNHeader}} {
		if h.name != "" {
			v.headerName(at+"."+h.field, h.name, seen)
		}
	}
	return &c
}

func (c *GeoIPConfig) uses() []Key { return nil }
