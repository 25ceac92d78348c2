package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/internal/config"
)

func authorities(setting, path string) config.CertificateFile {
	return config.CertificateFile{Setting: setting, Path: path, Authorities: true}
}

func TestCertificateFiles_AreThoseThatTheProcessUses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		want    []config.CertificateFile
	}{
		"no file": {[]string{"BERTH_DATABASE_URL=postgres://u@h/d?sslmode=require"}, nil},
		"listener": {
			[]string{
				"BERTH_TLS_CERT_FILE=/tls/cert",
				"BERTH_TLS_KEY_FILE=/tls/key",
				"BERTH_TLS_CLIENT_CA_FILE=/tls/clients",
			},
			[]config.CertificateFile{
				{Setting: "BERTH_TLS_CERT_FILE", Path: "/tls/cert", Reloaded: true},
				{
					Setting:     "BERTH_TLS_CLIENT_CA_FILE",
					Path:        "/tls/clients",
					Authorities: true,
					Reloaded:    true,
				},
			},
		},
		"parameters of the database URL": {
			[]string{
				"BERTH_DATABASE_URL=postgres://u@h1:1,h2:2/d?sslmode=verify-full&sslcert=/pg/cert&sslrootcert=/pg/ca",
				"BERTH_DATABASE_POOLER_URL=postgres://u@p/d?sslrootcert=/pooler/ca",
				"PGSSLROOTCERT=/other",
			},
			[]config.CertificateFile{
				{Setting: "sslcert of BERTH_DATABASE_URL", Path: "/pg/cert"},
				authorities("sslrootcert of BERTH_DATABASE_URL", "/pg/ca"),
				authorities("sslrootcert of BERTH_DATABASE_POOLER_URL", "/pooler/ca"),
			},
		},
		"variables of PostgreSQL": {
			[]string{"BERTH_DATABASE_URL=postgres://u@h/d", "PGSSLCERT=/pg/cert", "PGSSLROOTCERT=/pg/ca"},
			[]config.CertificateFile{
				{Setting: "sslcert of BERTH_DATABASE_URL", Path: "/pg/cert"},
				authorities("sslrootcert of BERTH_DATABASE_URL", "/pg/ca"),
			},
		},
		"authorities of the system": {[]string{"BERTH_DATABASE_URL=postgres://u@h/d?sslrootcert=system"}, nil},
		"other services": {
			[]string{
				"BERTH_RABBITMQ_URL=amqps://u:p@h/",
				"BERTH_RABBITMQ_CA_FILE=/mq",
				"BERTH_ODL_URL=https://h",
				"BERTH_ODL_CA_FILE=/odl",
				"BERTH_AUTH=keystone",
				"OS_AUTH_URL=https://h",
				"OS_CACERT=/keystone",
			},
			[]config.CertificateFile{
				authorities("BERTH_RABBITMQ_CA_FILE", "/mq"),
				authorities("BERTH_ODL_CA_FILE", "/odl"),
				authorities("OS_CACERT", "/keystone"),
			},
		},
		"services that are not in use": {
			[]string{"BERTH_RABBITMQ_CA_FILE=/mq", "BERTH_ODL_CA_FILE=/odl", "OS_CACERT=/keystone"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := load(t, c.environ...).CertificateFiles(c.environ)
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("files (-want +got):\n%s", d)
			}
		})
	}
}

func TestClientCertificateFiles_AreThoseOfTheCommandLine(t *testing.T) {
	t.Parallel()
	got := config.Client{CAFile: "/ca", CertFile: "/cert", KeyFile: "/key"}.CertificateFiles()
	want := []config.CertificateFile{
		authorities("BERTH_CA_FILE", "/ca"),
		{Setting: "BERTH_CLIENT_CERT_FILE", Path: "/cert"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	if got := (config.Client{}).CertificateFiles(); len(got) > 0 {
		t.Errorf("files without settings: got %v, want none", got)
	}
}
