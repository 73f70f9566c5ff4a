package model

import "slices"

// FieldsNaming returns the fields of an object that name another one, as requests write them.
func FieldsNaming(obj Object, key Key) []string {
	var fields []string
	add := func(field, name string, kind Kind) {
		if NewKey(kind, name) == key && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	inConfig := func(field string, mapNames func(func(path, name string, kind Kind) string) (JSON, error)) {
		_, _ = mapNames(func(path, name string, kind Kind) string { // what cannot be read names nothing
			add(field+"."+path, name, kind)
			return name
		})
	}
	switch o := obj.(type) {
	case *Upstream:
		add("Upstream_validation_cacertificate", o.ValidationCACertificate, KindSecret)
		add("Upstream_client_certificate", o.ClientCertificate, KindSecret)
	case *Service:
		add("Client_validation_cacertificate", o.ClientCACertificate, KindSecret)
	case *Filter:
		inConfig("Filter_config", o.MapNames)
	case *GlobalConfig:
		inConfig("config", o.MapNames)
	}
	return fields
}
