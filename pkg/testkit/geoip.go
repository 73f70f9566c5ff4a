package testkit

import (
	"errors"
	"net"
	"os"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// WriteCountries puts a database with the countries of ranges at a path, with a rename.
func WriteCountries(path string, countries map[string]string) error {
	records := map[string]mmdbtype.Map{}
	for cidr, code := range countries {
		records[cidr] = mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}
	}
	return writeDatabase(path, "Test-Country", records)
}

// WriteNetworks puts a database with the autonomous systems of ranges at a path, with a rename.
func WriteNetworks(path string, networks map[string]uint32) error {
	records := map[string]mmdbtype.Map{}
	for cidr, number := range networks {
		records[cidr] = mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(number)}
	}
	return writeDatabase(path, "Test-ASN", records)
}

func writeDatabase(path, kind string, records map[string]mmdbtype.Map) error {
	db, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType: kind, Description: map[string]string{"en": kind}, IncludeReservedNetworks: true,
	})
	if err != nil {
		return err
	}
	for cidr, record := range records {
		_, network, err := net.ParseCIDR(cidr)
		if err != nil {
			return err
		}
		if err := db.Insert(network, record); err != nil {
			return err
		}
	}
	out, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = db.WriteTo(out)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
