package dataplane

import (
	"context"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/geoip"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/standalone"
)

// stays reports whether this process stays as Envoy's parent.
func (o *RunOptions) stays() bool { return o.Drain > 0 || o.CountryDatabase+o.ASNDatabase != "" }

// databases are the copies that an Envoy reads. The zero value has none.
type databases struct {
	dir    *standalone.RunDir
	keeper *geoip.Keeper
}

// openDatabases copies the databases into a directory of their own, and names the copies in the bootstrap.
func openDatabases(o *RunOptions) (*databases, error) {
	if o.CountryDatabase+o.ASNDatabase == "" {
		return &databases{}, nil
	}
	dir, err := standalone.OpenRunDir(o.Log)
	if err != nil {
		return nil, err
	}
	d := &databases{dir, geoip.Open(dir.Join(""), geoip.Files{Country: o.CountryDatabase, ASN: o.ASNDatabase}, o.Log)}
	copies := d.keeper.Copies()
	o.Params.CountryDatabase, o.Params.ASNDatabase = copies.Country, copies.ASN
	return d, nil
}

// start follows the operator's files until stop is called, which waits.
func (d *databases) start(ctx context.Context) (stop func()) {
	if d.keeper == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // Envoy still drains when ctx ends
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.keeper.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (d *databases) close() error {
	if d.dir == nil {
		return nil
	}
	return d.dir.Close()
}
