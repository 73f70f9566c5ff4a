package config

import "errors"

// xdsSettings set who may fetch configurations.
func xdsSettings() []Setting {
	servers := []string{Serve, Standalone}
	return []Setting{
		{
			Name: "xds-tls-cert", Type: "file", commands: servers,
			Usage:   "PEM file with the certificate chain of --xds-addr, which then speaks TLS 1.3; read again when it changes",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.XDSTLSCert }, anyText),
		},
		{
			Name: "xds-tls-key", Type: "file", commands: servers,
			Usage:   "PEM file with the private key of --xds-tls-cert",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.XDSTLSKey }, anyText),
		},
		{
			Name: "xds-tls-client-ca", Type: "file", commands: servers,
			Usage: "PEM file with the certificate authorities of Envoys, whose certificates name their proxy: " +
				"URI spiffe://TRUST-DOMAIN/proxy/NAME, or DNS name NAME; read again when it changes",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.XDSTLSClientCA }, anyText),
		},
		{
			Name: "xds-tls-client-crl", Type: "file", commands: servers,
			Usage:   "file with the certificate revocation lists of those authorities, PEM or DER; read again when it changes",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.XDSTLSClientCRL }, anyText),
		},
		{
			Name: "insecure-xds", Type: "bool", Default: "false", commands: servers,
			Usage: "accept clients of --xds-addr that do not prove their identity: " +
				"everybody who reaches it can read every configuration, private keys included",
			allowed: "true or false",
			set:     setter(func(c *Config) *bool { return &c.InsecureXDS }, boolean),
		},
	}
}

// checkXDS checks the combination of TLS settings.
func (c *Config) checkXDS() error {
	switch {
	case (c.XDSTLSCert == "") != (c.XDSTLSKey == ""):
		return errors.New("--xds-tls-cert and --xds-tls-key belong together: set both or neither")
	case c.XDSTLSClientCA != "" && c.XDSTLSCert == "":
		return errors.New("--xds-tls-client-ca requires --xds-tls-cert and --xds-tls-key: " +
			"Envoys present a certificate only to a server that has one")
	case c.XDSTLSClientCRL != "" && c.XDSTLSClientCA == "":
		return errors.New("--xds-tls-client-crl requires --xds-tls-client-ca, whose certificates it revokes")
	}
	return nil
}
