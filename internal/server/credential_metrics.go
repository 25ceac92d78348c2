package server

import (
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/contrib/envconfig"

	"berth/internal/config"
	"berth/internal/credential"
)

// credentialCollector is the collector of the metric of the certificates and tokens of this process. A
// process reads most of them only at its start: their values stay, so that a replaced file without a restart
// does not hide that the process still uses the former certificate.
type credentialCollector struct {
	expiry   *prometheus.Desc
	read     []prometheus.Metric
	reloaded []credential.Credential // the process reads them again when they change
}

// registerCredentialMetric registers the metric of the certificates and tokens that the settings have. The
// certificate of the HTTP listeners is not among them, because it has a metric of its own.
func registerCredentialMetric(cfg config.Config, env environment, registry *prometheus.Registry) error {
	files := slices.DeleteFunc(cfg.CertificateFiles(env), func(f config.CertificateFile) bool {
		return f.Setting == "BERTH_TLS_CERT_FILE"
	})
	temporal, err := credential.OfTemporal(envconfig.LoadClientConfigProfileOptions{EnvLookup: env})
	if err != nil {
		return err
	}
	registry.MustRegister(newCredentialCollector(slices.Concat(credential.OfFiles(files), temporal)))
	return nil
}

func newCredentialCollector(all []credential.Credential) *credentialCollector {
	c := &credentialCollector{expiry: newGauge(
		"berth_credential_expiry_timestamp_seconds",
		"When the certificates in a file, or a token, that this process uses expire, in seconds since 1970, by setting. Of several certificate authorities in a file, the last one counts. The certificate of the HTTP listeners has a metric of its own.",
		"setting",
		"file",
	)}
	for _, one := range all {
		if one.Reloaded {
			c.reloaded = append(c.reloaded, one)
		} else {
			c.read = append(c.read, c.metrics(one)...)
		}
	}
	return c
}

// metrics returns the value of a credential, or none if it does not expire or cannot be read.
func (c *credentialCollector) metrics(one credential.Credential) []prometheus.Metric {
	v, err := one.Validity()
	if err != nil {
		slog.Warn("the expiry of a certificate is unknown", "setting", one.Setting, "error", err)
	}
	if err != nil || v.NotAfter.IsZero() {
		return nil
	}
	return []prometheus.Metric{prometheus.MustNewConstMetric(
		c.expiry, prometheus.GaugeValue, float64(v.NotAfter.Unix()), one.Setting, one.File)}
}

// Describe implements prometheus.Collector.
func (c *credentialCollector) Describe(all chan<- *prometheus.Desc) { all <- c.expiry }

// Collect implements prometheus.Collector.
func (c *credentialCollector) Collect(all chan<- prometheus.Metric) {
	values := slices.Clone(c.read)
	for _, one := range c.reloaded {
		values = append(values, c.metrics(one)...)
	}
	for _, m := range values {
		all <- m
	}
}
