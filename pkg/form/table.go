package form

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Fields lists the fields of a kind, in the order of documentation. Links have
// none.
func Fields(kind model.Kind) []Field {
	switch kind {
	case model.KindUpstream:
		return upstreamFields()
	case model.KindService:
		return []Field{
			required(text("Service_Name", func(o *model.Service) *string { return &o.Name })),
			required(text("fqdn", func(o *model.Service) *string { return &o.FQDN })),
			text("Https", func(o *model.Service) *string { return &o.HTTPS }),
			integer("Hsts_seconds", func(o *model.Service) *int { return &o.HSTSSeconds }),
			text("Client_validation_cacertificate", func(o *model.Service) *string { return &o.ClientCACertificate }),
			boolean("Public", func(o *model.Service) *bool { return &o.Public }),
			tags(),
		}
	case model.KindRoute:
		return []Field{
			required(text("Route_Name", func(o *model.Route) *string { return &o.Name })),
			required(text("Route_prefix", func(o *model.Route) *string { return &o.Prefix })),
			object("Route_config", setRouteConfig, func(o *model.Route) any { return o.Config }),
			tags(),
		}
	case model.KindProxy:
		return []Field{
			required(text("Name", func(o *model.Proxy) *string { return &o.Name })),
			integer("Http_port", func(o *model.Proxy) *int { return &o.HTTPPort }),
			integer("Https_port", func(o *model.Proxy) *int { return &o.HTTPSPort }),
			text("Listen_ip", func(o *model.Proxy) *string { return &o.ListenIP }),
			integer("Trusted_hops", func(o *model.Proxy) *int { return &o.TrustedHops }),
			text("Escaped_slashes", func(o *model.Proxy) *string { return &o.EscapedSlashes }),
			text("Underscore_headers", func(o *model.Proxy) *string { return &o.UnderscoreHeaders }),
			version("Tls_min_version", func(o *model.Proxy) *string { return &o.TLSMinVersion }),
			tags(),
		}
	case model.KindFilter:
		return []Field{
			required(text("Filter_name", func(o *model.Filter) *string { return &o.Name })),
			required(text("Filter_type", func(o *model.Filter) *string { return &o.Type })),
			config("Filter_config", func(o *model.Filter) *model.JSON { return &o.Config }),
			tags(),
		}
	case model.KindGlobalConfig:
		return []Field{
			required(text("globalconfig_name", func(o *model.GlobalConfig) *string { return &o.Name })),
			required(text("globalconfig_type", func(o *model.GlobalConfig) *string { return &o.Type })),
			required(config("config", func(o *model.GlobalConfig) *model.JSON { return &o.Config })),
			tags(),
		}
	case model.KindSecret:
		return secretFields()
	case model.KindKeySet:
		return []Field{
			required(text("Keyset_name", func(o *model.KeySet) *string { return &o.Name })),
			tags(),
		}
	case model.KindAPIKey:
		return []Field{
			required(text("Key_name", func(o *model.APIKey) *string { return &o.Name })),
			text("Key_hash", func(o *model.APIKey) *string { return &o.Hash }),
			text("Key_description", func(o *model.APIKey) *string { return &o.Description }),
			tags(),
		}
	}
	return nil
}

func upstreamFields() []Field {
	type u = *model.Upstream
	return []Field{
		required(text("Upstream_name", func(o u) *string { return &o.Name })),
		required(text("Upstream_ip", func(o u) *string { return &o.IP })),
		required(integer("Upstream_port", func(o u) *int { return &o.Port })),
		integer("Upstream_weight", func(o u) *int { return &o.Weight }),
		text("Upstream_hc_path", func(o u) *string { return &o.HCPath }),
		text("Upstream_hc_host", func(o u) *string { return &o.HCHost }),
		integer("Upstream_hc_intervalseconds", func(o u) *int { return &o.HCIntervalSeconds }),
		integer("Upstream_hc_timeoutseconds", func(o u) *int { return &o.HCTimeoutSeconds }),
		integer("Upstream_hc_unhealthythresholdcount", func(o u) *int { return &o.HCUnhealthyThresholdCount }),
		integer("Upstream_hc_healthythresholdcount", func(o u) *int { return &o.HCHealthyThresholdCount }),
		text("Upstream_strategy", func(o u) *string { return &o.Strategy }),
		text("Upstream_protocol", func(o u) *string { return &o.Protocol }),
		text("Upstream_validation_cacertificate", func(o u) *string { return &o.ValidationCACertificate }),
		text("Upstream_validation_subjectname", func(o u) *string { return &o.ValidationSubjectName }),
		boolean("Upstream_tls_insecure", func(o u) *bool { return &o.TLSInsecure }),
		text("Upstream_client_certificate", func(o u) *string { return &o.ClientCertificate }),
		integer("Upstream_connect_timeoutseconds", func(o u) *int { return &o.ConnectTimeoutSeconds }),
		integer("Upstream_idle_timeoutseconds", func(o u) *int { return &o.IdleTimeoutSeconds }),
		integer("Upstream_keepalive_intervalseconds", func(o u) *int { return &o.KeepaliveIntervalSeconds }),
		integer("Upstream_max_connections", func(o u) *int { return &o.MaxConnections }),
		integer("Upstream_max_pending", func(o u) *int { return &o.MaxPending }),
		integer("Upstream_max_requests", func(o u) *int { return &o.MaxRequests }),
		integer("Upstream_max_retries", func(o u) *int { return &o.MaxRetries }),
		integer("Upstream_retry_budgetpercent", func(o u) *int { return &o.RetryBudgetPercent }),
		integer("Upstream_retry_budgetmincount", func(o u) *int { return &o.RetryBudgetMinCount }),
		integer("Upstream_outlier_thresholdcount", func(o u) *int { return &o.OutlierThresholdCount }),
		integer("Upstream_outlier_ejectionseconds", func(o u) *int { return &o.OutlierEjectionSeconds }),
		integer("Upstream_panic_thresholdpercent", func(o u) *int { return &o.PanicThresholdPercent }),
		tags(),
	}
}

func secretFields() []Field {
	type s = *model.Secret
	return []Field{
		required(text("Secret_name", func(o s) *string { return &o.Name })),
		text("Secret_type", func(o s) *string { return &o.Type }),
		text("Secret_sni", func(o s) *string { return &o.SNI }),
		inPEM(text("Secret_cert", func(o s) *string { return &o.Cert }), "openssl x509 -inform der"),
		inPEM(text("Secret_key", func(o s) *string { return &o.PrivateKey }), "openssl pkey -inform der"),
		text("Secret_value", func(o s) *string { return &o.Value }),
		tags(),
	}
}

func setRouteConfig(o *model.Route, text string) error {
	config, err := model.ParseRouteConfig(text)
	if err != nil {
		return err
	}
	o.Config = config
	return nil
}

// config is a field for the JSON of a filter or global config.
func config[T model.Object](name string, at func(T) *model.JSON) Field {
	return object(name, func(o T, text string) error {
		c, err := model.CompactJSON(text)
		if err != nil {
			return err
		}
		*at(o) = c
		return nil
	}, func(o T) any { return *at(o) })
}
