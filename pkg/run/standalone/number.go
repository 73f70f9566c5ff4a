package standalone

import (
	"bytes"
	"fmt"
	"strconv"
)

// number is a count in JSON, where a 64-bit number is a string.
type number uint64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseUint(string(bytes.Trim(b, `"`)), 10, 64)
	if err != nil {
		return fmt.Errorf("reading a count: %w", err)
	}
	*n = number(v)
	return nil
}
