package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/pki"
)

// showCertificates writes the certificates of an authority.
func showCertificates(cmd *cobra.Command, list []pki.Entry) error {
	r := &remote{out: cmd.OutOrStdout(), format: text(cmd, "output")}
	if r.format != formatTable && (r.format != "" || !onTerminal(r.out)) {
		return r.write(list)
	}
	now := time.Now()
	rows := [][]string{{"WHAT", "FILE", "SERIAL", "NAMES", "ENDS", "REVOKED"}}
	for _, e := range list {
		revoked := ""
		if e.RevokedAt != nil {
			revoked = date(*e.RevokedAt)
		}
		row := []string{e.What, e.File, e.Serial, strings.Join(e.SANs, ", "), remaining(e.NotAfter.Sub(now)) + " (" + date(e.NotAfter) + ")", revoked}
		for i, cell := range row {
			row[i] = short(client.Printable(cell))
		}
		rows = append(rows, row)
	}
	return table(r.out, rows...)
}

// keyFile is the file with the key of a certificate's file.
func keyFile(certificate string) string { return strings.TrimSuffix(certificate, ".crt") + ".key" }
