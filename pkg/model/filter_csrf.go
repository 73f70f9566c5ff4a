package model

// CSRFFilter refuses POST, PUT, PATCH and DELETE that a page of another site asks for (cross-site request forgery): whose
// Origin or, without one, Referer is not of the host itself. The filters of a service and a route add up.
// +page=csrf.md
// +example={origins: ["https://app.example.com"]}
type CSRFFilter struct {
	// Origins whose pages may ask for changes beside those of the host itself. Only host and port are compared.
	// +maxItems=maxOrigins
	Origins []string `json:"origins"`
}

func readCSRF(v *validator, at, _ string, config JSON) Spec {
	var f CSRFFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if len(f.Origins) > maxOrigins {
		v.add(at+".origins", "has %d entries; a list may have %d", len(f.Origins), maxOrigins)
		return &f
	}
	for _, o := range f.Origins {
		v.origin(at+".origins", o)
	}
	return &f
}

func (f *CSRFFilter) uses() []Key { return nil }

// Advice says what works, but probably not as intended.
func (f *CSRFFilter) Advice() []string {
	return []string{"refuses POST, PUT, PATCH and DELETE without Origin and Referer, as most clients but browsers send them: attach it only where browsers ask"}
}
