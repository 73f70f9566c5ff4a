package model

// GlobalConfig is a setting for whole proxies: for those that it is attached
// to, or for every one while it is attached to none (rest-api.md).
// +example={globalconfig_name: rates, globalconfig_type: globalconfig_ratelimit, config: {domain: shop, descriptors: []}}
type GlobalConfig struct {
	ID   int64  `json:"globalconfig_id"`
	Name string `json:"globalconfig_name" form:"globalconfig_name,required"`
	// +schema=GlobalconfigType
	Type string `json:"globalconfig_type" form:"globalconfig_type,required"`
	// A JSON object of the type, or a string that contains one.
	Config   JSON `json:"config" form:"config,required"`
	Tags     Tags `json:"tags" form:"tags"`
	CreateTS Time `json:"create_ts"`
	UpdateTS Time `json:"update_ts"`
}

// ParsedGlobalConfig is a global config with its configuration as a Go value. Config has
// parsed every global config when it comes in, so that nothing behind it reads JSON.
type ParsedGlobalConfig struct {
	*GlobalConfig
	// Type is the long name of the type, however it was written.
	Type string
	// Spec is the configuration as far as it can be read; nil means not at all,
	// or that the type is not known.
	Spec Spec
	// Fault says what Validate would refuse of the type or the configuration.
	Fault error
}

// Parse reads the configuration.
func (g *GlobalConfig) Parse() *ParsedGlobalConfig {
	var v validator
	spec := v.config("globalconfig_type", "config", g.Name, g.Type, g.Config, globalConfigTypes())
	return &ParsedGlobalConfig{g, g.TypeName(), spec, v.fault()}
}

// Names implements Namer: what the configuration names.
func (g *ParsedGlobalConfig) Names() []Key {
	if g.Spec == nil {
		return nil
	}
	return g.Spec.uses()
}

// Key implements Object.
func (g *GlobalConfig) Key() Key { return GlobalConfigKey(g.Name) }

// Meta implements Object.
func (g *GlobalConfig) Meta() Meta { return Meta{&g.ID, &g.CreateTS, &g.UpdateTS} }

// TagList implements Tagged.
func (g *GlobalConfig) TagList() *Tags { return &g.Tags }

// Names implements Namer: what the configuration names.
func (g *GlobalConfig) Names() []Key { return g.Parse().Names() }

// Validate implements Object.
func (g *GlobalConfig) Validate() []FieldError {
	var v validator
	v.name("globalconfig_name", g.Name, false)
	v.config("globalconfig_type", "config", g.Name, g.Type, g.Config, globalConfigTypes())
	v.tags(g.Tags)
	return v.errs
}

// Seal implements Confidential.
func (g *GlobalConfig) Seal(s Sealer, stored Object) (err error) {
	t, _ := findType(globalConfigTypes(), g.Type)
	old, _ := stored.(*GlobalConfig)
	if old == nil {
		old = &GlobalConfig{}
	}
	g.Config, err = sealConfig(s, t, g.Config, old.Config, "globalconfig/"+g.Name, "config")
	return err
}

// Redact implements Confidential.
func (g *GlobalConfig) Redact() Object {
	c := *g
	c.Config = redactJSON(g.Config)
	return &c
}

// MapSealed implements Confidential.
func (g *GlobalConfig) MapSealed(change func(sealed, place string) (string, error)) (err error) {
	g.Config, err = mapSealed(g.Config, "globalconfig/"+g.Name, change)
	return err
}

// MapNames returns the configuration with each name of an object replaced by what change says
// for it, its path in the JSON and its kind.
func (g *GlobalConfig) MapNames(change func(path, name string, kind Kind) string) (JSON, error) {
	t, _ := findType(globalConfigTypes(), g.Type)
	return t.mapNames(g.Config, change)
}
