package model

// CSRFFilter refuses POST, PUT, PATCH and DELETE (cross-site request forgery), unless their Origin or, without one,
// their Referer is of the host itself. The filters of a service and a route both apply.
// +page=csrf.md
// +example={origins: ["https://app.example.com"]}
type CSRFFilter struct {
	// Origins whose pages may send changes, in addition to the host itself. Only host and port are compared.
	// +maxItems=maxOrigins
	Origins []string `json:"origins"`
}

func readCSRF(v *validator, at, _ string, config JSON) Spec {
	var f CSRFFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if len(f.Origins) > maxOrigins {
		v.add(at+".origins", "has %d entries; at most %d are allowed", len(f.Origins), maxOrigins)
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
	return []string{"refuses POST, PUT, PATCH and DELETE without Origin and Referer, " +
		"and most clients other than browsers send neither: attach it only where browsers call"}
}
