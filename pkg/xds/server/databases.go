package server

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// databasesOf returns the databases of addresses that the Envoy has, see envoy.Params. It concerns this Envoy only: one
// that has no such file would end.
func databasesOf(node *corev3.Node) snapshot.Databases {
	file := func(name string) string {
		p := node.GetMetadata().GetFields()[name].GetStringValue()
		if !path.IsAbs(p) || path.Clean(p) != p || path.Ext(p) != ".mmdb" || len(p) > maxPath ||
			strings.ContainsFunc(p, unicode.IsControl) {
			return ""
		}
		return p
	}
	return snapshot.Databases{Country: file("gatehouse_country_database"), ASN: file("gatehouse_asn_database")}
}

// maxPath is the longest path of a database.
const maxPath = 1024

// tellDatabases records which Envoys of a proxy lack a database that its services need. The caller holds mu.
func (s *Server) tellDatabases(proxy string) {
	var wants snapshot.Wants
	if snap := s.snapshots[proxy]; snap != nil {
		wants = snap.Wants
	}
	var list []model.Condition
	for _, kind := range []struct {
		wanted      bool
		plural, arg string
		file        func(snapshot.Databases) string
	}{
		{wants.Country, "countries", "--geoip-country", func(d snapshot.Databases) string { return d.Country }},
		{wants.ASN, "networks", "--geoip-asn", func(d snapshot.Databases) string { return d.ASN }},
	} {
		var without []string
		for st := range s.streams {
			if kind.wanted && st.proxy == proxy && kind.file(st.databases) == "" {
				without = append(without, st.address)
			}
		}
		if len(without) == 0 {
			continue
		}
		slices.Sort(without)
		const most = 3
		names := strings.Join(without[:min(most, len(without))], ", ")
		if more := len(without) - most; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		list = append(list, model.Condition{
			Key: model.ProxyKey(proxy), Code: model.NoDatabase,
			Message: fmt.Sprintf("a vh_filter_ipaccess names %s, and the Envoys at %s have no database of them: there it does what its "+
				"no_database says, and refuses by default; start them with gatehouse envoy %s FILE", kind.plural, names, kind.arg),
		})
	}
	s.opts.Status.SetConditions("databases of "+proxy, list)
}
