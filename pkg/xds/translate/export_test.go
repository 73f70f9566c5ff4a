package translate

import "google.golang.org/protobuf/types/known/anypb"

// Message and Pack export message and pack to the specs.
type Message = message

func Pack(m Message) (*anypb.Any, error) { return pack(m) }

// RequestFormats are the fields of a line of the access log.
var RequestFormats = requestFormats

// Negotiated returns mappers in all forms.
var Negotiated = negotiated

// PageOf returns the page of a listener.
var PageOf = pageOf
