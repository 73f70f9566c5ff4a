package translate

import "google.golang.org/protobuf/types/known/anypb"

// Message and Pack are for the specs.
type Message = message

func Pack(m Message) (*anypb.Any, error) { return pack(m) }
