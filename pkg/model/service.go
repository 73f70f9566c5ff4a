package model

// Service is a host name and the routes under it.
type Service struct {
	ID   int64  `json:"service_id"`
	Name string `json:"service_name"`
	// FQDN is the host that the service matches, without regard to case: an
	// exact name, "*.suffix", or "*" for any host.
	FQDN     string `json:"fqdn"`
	Tags     Tags   `json:"tags"`
	CreateTS Time   `json:"create_ts"`
	UpdateTS Time   `json:"update_ts"`
}

// Key implements Object.
func (s *Service) Key() Key { return ServiceKey(s.Name) }

// Meta implements Object.
func (s *Service) Meta() Meta { return Meta{&s.ID, &s.CreateTS, &s.UpdateTS} }

// TagList implements Tagged.
func (s *Service) TagList() *Tags { return &s.Tags }

// Validate implements Object.
func (s *Service) Validate() []FieldError {
	var v validator
	v.name("Service_Name", s.Name, true)
	v.fqdn("fqdn", s.FQDN)
	v.tags(s.Tags)
	return v.errs
}
