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

// filesOf returns the files that the Envoy has, see envoy.Params. They concern this Envoy only: one that has no such
// database would end.
func filesOf(node *corev3.Node) snapshot.Files {
	file := func(name, extension string) string {
		p := node.GetMetadata().GetFields()[name].GetStringValue()
		if !path.IsAbs(p) || path.Clean(p) != p || extension != "" && path.Ext(p) != extension || len(p) > maxPath ||
			strings.ContainsFunc(p, unicode.IsControl) {
			return ""
		}
		return p
	}
	return snapshot.Files{
		Country: file("gatehouse_country_database", ".mmdb"), ASN: file("gatehouse_asn_database", ".mmdb"),
		Logs: file("gatehouse_access_log_dir", ""),
	}
}

// maxPath is the longest path of a file or directory.
const maxPath = 1024

// cannotOpen is what Envoy 1.39 says when it refuses a listener because it cannot open the file of a log.
const cannotOpen = "unable to open file"

// loseLogs forgets the directory for logs of an Envoy that cannot write there: its lines go to standard output until it
// connects again. Otherwise it would keep the listeners that it has.
func (st *stream) loseLogs() {
	s := st.server
	s.mu.Lock()
	defer s.mu.Unlock()
	st.files.Logs, st.common = "", nil
	s.tellFiles(st.proxy)
	st.wake()
}

// tellFiles records which Envoys of a proxy lack a file that it needs. The caller holds mu.
func (s *Server) tellFiles(proxy string) {
	var wants snapshot.Wants
	if snap := s.snapshots[proxy]; snap != nil {
		wants = snap.Wants
	}
	const noDatabase = "a vh_filter_ipaccess names %s, and the Envoys at %s have no database of them: there it does what its " +
		"no_database says, and refuses by default; start them with gatehouse envoy %s FILE"
	var list []model.Condition
	for _, kind := range []struct {
		code, message string
		wanted        bool
		what, arg     string
		file          func(snapshot.Files) string
	}{
		{model.NoDatabase, noDatabase, wants.Country, "countries", "--geoip-country", func(f snapshot.Files) string { return f.Country }},
		{model.NoDatabase, noDatabase, wants.ASN, "networks", "--geoip-asn", func(f snapshot.Files) string { return f.ASN }},
		{
			model.NoLogDirectory, "globalconfig %s writes to a file, and the Envoys at %s have no directory for it, or cannot write " +
				"there: they write to standard output; start them with gatehouse envoy %s DIRECTORY", len(wants.Logs) > 0,
			strings.Join(wants.Logs, ", "), "--access-log-dir", func(f snapshot.Files) string { return f.Logs },
		},
	} {
		if without := s.without(proxy, kind.file); kind.wanted && without != "" {
			list = append(list, model.Condition{
				Key: model.ProxyKey(proxy), Code: kind.code, Message: fmt.Sprintf(kind.message, kind.what, without, kind.arg),
			})
		}
	}
	s.opts.Status.SetConditions("files of "+proxy, list)
}

// without returns the addresses of Envoys of a proxy that lack a file, for a message. The caller holds mu.
func (s *Server) without(proxy string, file func(snapshot.Files) string) string {
	var list []string
	for st := range s.streams {
		if st.proxy == proxy && file(st.files) == "" {
			list = append(list, st.address)
		}
	}
	slices.Sort(list)
	const most = 3
	names := strings.Join(list[:min(most, len(list))], ", ")
	if more := len(list) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return names
}
