package model

// HeaderList is changes of headers that several filters make.
// +page=lists.md
// +example={response: {set: {x-frame-options: DENY, x-content-type-options: nosniff}}}
type HeaderList struct {
	// Whether values are templates with values of the request, instead of text.
	Template bool          `json:"template"`
	Request  HeaderChanges `json:"request"`
	Response HeaderChanges `json:"response"`
}

func readHeaderList(v *validator, at, _ string, config JSON) Spec {
	var l HeaderList
	if v.decode(at, config, &l) && v.headerChanges(at, l.Template, l.Request, l.Response) == 0 {
		v.add(at, `changes no header; set request or response, such as {"response":{"set":{"x-frame-options":"DENY"}}}`)
	}
	return &l
}

func (l *HeaderList) uses() []Key { return nil }
