package model

import "fmt"

// List is a list that several filters name: a change of it reaches all of them.
// +example={list_name: office, list_type: addresses, list_config: {addresses: [192.0.2.0/24]}}
type List struct {
	ID   int64  `json:"list_id"`
	Name string `json:"list_name" form:"List_name,required"`
	// +schema=ListType
	Type string `json:"list_type" form:"List_type,required"`
	// A JSON object of the type, or a string that contains one.
	Config   JSON `json:"list_config" form:"List_config,required"`
	Tags     Tags `json:"tags" form:"tags"`
	CreateTS Time `json:"create_ts"`
	UpdateTS Time `json:"update_ts"`
}

// The types of lists.
const (
	ListAddresses = "addresses"
	ListHeaders   = "headers"
)

// ListPrefix begins the type of a RouteFilter that is a list in Kubernetes. Without it, headers would be a filter.
const ListPrefix = "list_"

func listTypes() []configType {
	return []configType{
		{name: ListAddresses, read: readAddressList},
		{name: ListHeaders, read: readHeaderList},
	}
}

// ListKey is the key of the list called name.
func ListKey(name string) Key { return NewKey(KindList, name) }

func listKeys(names ...[]string) (keys []Key) {
	for _, some := range names {
		for _, name := range some {
			keys = append(keys, ListKey(name))
		}
	}
	return keys
}

// ParsedList is a list with its configuration as a Go value.
type ParsedList struct {
	*List
	// Spec is the configuration as far as it can be read; nil means not at all, or that the type is not known.
	Spec Spec
	// Fault says what Validate would refuse of the type or the configuration.
	Fault error
}

// Parse reads the configuration.
func (l *List) Parse() *ParsedList {
	var v validator
	spec := v.config("List_type", "List_config", l.Name, l.Type, l.Config, listTypes())
	return &ParsedList{l, spec, v.fault()}
}

// Key implements Object.
func (l *List) Key() Key { return ListKey(l.Name) }

// Meta implements Object.
func (l *List) Meta() Meta { return Meta{&l.ID, &l.CreateTS, &l.UpdateTS} }

// TagList implements Tagged.
func (l *List) TagList() *Tags { return &l.Tags }

// Validate implements Object.
func (l *List) Validate() []FieldError {
	var v validator
	v.name("List_name", l.Name, false)
	v.config("List_type", "List_config", l.Name, l.Type, l.Config, listTypes())
	v.tags(l.Tags)
	return v.errs
}

// maxLists bounds the lists that one place of a filter names.
const maxLists = 20

// lists checks names of lists.
func (v *validator) lists(field string, names []string) {
	if len(names) > maxLists {
		v.add(field, "has %d lists; at most %d are allowed", len(names), maxLists)
		return
	}
	for i, name := range names {
		v.name(fmt.Sprintf("%s[%d]", field, i), name, false)
	}
}

// ListType returns the type of the lists that filters of a type name; empty means that they name none.
func (f *Filter) ListType() string {
	switch f.TypeName() {
	case FilterIPAccess, FilterRBAC, FilterMaintenance:
		return ListAddresses
	case FilterHeaders:
		return ListHeaders
	}
	return ""
}

// AddressLists returns the names of the lists of addresses that the filter compares.
func (f *ParsedFilter) AddressLists() (names []string) {
	if f.ListType() != ListAddresses || f.Fault != nil {
		return nil
	}
	for _, key := range f.Names() {
		if key.Kind == KindList {
			names = append(names, key.Name())
		}
	}
	return names
}
