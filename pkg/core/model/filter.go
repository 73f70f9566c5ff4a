package model

import "slices"

// Filter is something that happens to the requests of a route or service.
// +example={filter_name: limit, filter_type: route_filter_ratelimit, filter_config: {descriptors: [{remote_address: client}]}}
type Filter struct {
	ID   int64  `json:"filter_id"`
	Name string `json:"filter_name" form:"Filter_name,required"`
	// Type says what it does and where it can be attached.
	// +schema=FilterType
	Type string `json:"filter_type" form:"Filter_type,required"`
	// A JSON object of the type, or a string that contains one.
	Config   JSON `json:"filter_config" form:"Filter_config"`
	Tags     Tags `json:"tags" form:"tags"`
	CreateTS Time `json:"create_ts"`
	UpdateTS Time `json:"update_ts"`
}

// ParsedFilter is a filter with its configuration as a Go value. Config has
// parsed every filter when it comes in, so that nothing behind it reads JSON.
type ParsedFilter struct {
	*Filter
	// Type is the long name of the type, however it was written.
	Type string
	// Spec is the configuration as far as it can be read; nil means not at all,
	// or that the type is not known.
	Spec Spec
	// Fault says what Validate would refuse of the type or the configuration.
	Fault error
}

// Parse reads the configuration.
func (f *Filter) Parse() *ParsedFilter {
	var v validator
	spec := v.config("Filter_type", "Filter_config", f.Name, f.Type, f.Config, filterTypes())
	return &ParsedFilter{f, f.TypeName(), spec, v.fault()}
}

// Names implements Namer: what the configuration names.
func (f *ParsedFilter) Names() []Key {
	if f.Spec == nil {
		return nil
	}
	return f.Spec.uses()
}

// Key implements Object.
func (f *Filter) Key() Key { return FilterKey(f.Name) }

// Meta implements Object.
func (f *Filter) Meta() Meta { return Meta{&f.ID, &f.CreateTS, &f.UpdateTS} }

// TagList implements Tagged.
func (f *Filter) TagList() *Tags { return &f.Tags }

// Names implements Namer: what the configuration names.
func (f *Filter) Names() []Key { return f.Parse().Names() }

// strictSpec is implemented by a Spec with rules for what is written from now on. What was stored before stays in
// force.
type strictSpec interface{ checkWritten(v *validator, at string) }

// Validate implements Object.
func (f *Filter) Validate() []FieldError {
	var v validator
	v.name("Filter_name", f.Name, false)
	spec := v.config("Filter_type", "Filter_config", f.Name, f.Type, f.Config, filterTypes())
	if s, strict := spec.(strictSpec); strict && len(v.errs) == 0 {
		s.checkWritten(&v, "Filter_config")
	}
	v.tags(f.Tags)
	return v.errs
}

// FitsOn reports whether the filter can be attached to an object of kind.
func (f *Filter) FitsOn(kind Kind) bool {
	t, known := findType(filterTypes(), f.Type)
	return slices.Contains(t.on, kind) || kind == KindProxy && known && t.notOnProxy == ""
}

// ProxyRefusal returns why the filter cannot be attached to a proxy, in words that follow its name; empty means that it
// can.
func (f *Filter) ProxyRefusal() string {
	t, _ := findType(filterTypes(), f.Type)
	return t.notOnProxy
}

// Seal implements Confidential.
func (f *Filter) Seal(s Sealer, stored Object) (err error) {
	t, _ := findType(filterTypes(), f.Type)
	old, _ := stored.(*Filter)
	if old == nil {
		old = &Filter{}
	}
	f.Config, err = sealConfig(s, t, f.Config, old.Config, "filter/"+f.Name, "Filter_config")
	return err
}

// Redact implements Confidential.
func (f *Filter) Redact() Object {
	c := *f
	c.Config = redactJSON(f.Config)
	return &c
}

// MapSealed implements Confidential.
func (f *Filter) MapSealed(change func(sealed, place string) (string, error)) (err error) {
	f.Config, err = mapSealed(f.Config, "filter/"+f.Name, change)
	return err
}

// MapNames returns the configuration with each name of an object replaced by what change says
// for it, its path in the JSON and its kind.
func (f *Filter) MapNames(change func(path, name string, kind Kind) string) (JSON, error) {
	t, _ := findType(filterTypes(), f.Type)
	return t.mapNames(f.Config, change)
}
