package geoip

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// kind is what a database says about addresses.
type kind struct {
	// setting is the name of the flag of its file.
	setting string
	// field is where Envoy reads it in a record.
	field []any
	// isValue reports whether a value is of the type that Envoy reads.
	isValue func(any) bool
}

//nolint:gochecknoglobals // never written
var (
	country = kind{"geoip-country", []any{"country", "iso_code"}, func(v any) bool { _, ok := v.(string); return ok }}
	asn     = kind{"geoip-asn", []any{"autonomous_system_number"}, func(v any) bool {
		switch v.(type) {
		case uint16, uint32, uint64:
			return true
		}
		return false
	}}
)

// maxRecords is in how many records a check looks for what Envoy reads.
const maxRecords = 100_000

// check reads a whole file, and reports whether Envoy finds in it what it looks for. It returns when the database was
// built.
func check(path string, k kind) (build string, err error) {
	db, err := maxminddb.Open(path)
	if err != nil {
		return "", fmt.Errorf("is no database of MaxMind's format (.mmdb): %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Verify(); err != nil {
		return "", fmt.Errorf("is damaged: %w", err)
	}
	looked := 0
	for record := range db.Networks() {
		var value any
		if err := record.DecodePath(&value, k.field...); err != nil {
			return "", fmt.Errorf("is damaged: %w", err)
		}
		if k.isValue(value) {
			return db.Metadata.BuildTime().UTC().Format(time.RFC3339), nil
		}
		if looked++; looked == maxRecords {
			break
		}
	}
	return "", fmt.Errorf("is of type %q, and its records have no %v, which Envoy reads", db.Metadata.DatabaseType, name(k.field))
}

// Where returns what the copies say of an address now; empty for what they do not have.
func (k *Keeper) Where(address netip.Addr) (country, network string) {
	for _, d := range k.databases {
		value, err := d.find(address)
		switch {
		case err != nil:
			k.log.Warn("a database cannot be asked", "setting", d.kind.setting, "err", err)
		case d.kind.setting == asn.setting:
			network = value
		default:
			country = value
		}
	}
	return country, network
}

func (d *database) find(address netip.Addr) (text string, err error) {
	if !d.kept {
		return "", nil
	}
	db, err := maxminddb.Open(d.copy)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if db.Metadata.IPVersion == 4 && !address.Unmap().Is4() {
		return "", nil
	}
	var value any
	if err := db.Lookup(address.Unmap()).DecodePath(&value, d.kind.field...); err != nil || !d.kind.isValue(value) {
		return "", err
	}
	return fmt.Sprint(value), nil
}

func name(field []any) (out string) {
	for i, part := range field {
		if i > 0 {
			out += "."
		}
		out += fmt.Sprint(part)
	}
	return out
}
