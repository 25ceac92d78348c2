package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// CertificateFile is a file with certificates that a setting names.
type CertificateFile struct {
	Setting     string // for example BERTH_ODL_CA_FILE
	Path        string
	Authorities bool // certificate authorities of others, and not a certificate of the process itself
	Reloaded    bool // the process reads the file again when it changes
}

// CertificateFiles returns the files with certificates that a process with these settings uses. The parameter
// environ is the environment in the form of os.Environ, because it also has the variables of PostgreSQL's
// clients.
func (c Config) CertificateFiles(environ []string) []CertificateFile {
	files := []CertificateFile{
		{Setting: "BERTH_TLS_CERT_FILE", Path: c.TLS.CertFile, Reloaded: true},
		{
			Setting:     "BERTH_TLS_CLIENT_CA_FILE",
			Path:        c.TLS.ClientCAFile,
			Authorities: true,
			Reloaded:    true,
		},
	}
	files = append(files, databaseFiles("BERTH_DATABASE_URL", c.DatabaseURL, environ)...)
	files = append(files, databaseFiles("BERTH_DATABASE_POOLER_URL", c.DatabasePooler, environ)...)
	if len(c.RabbitMQ) > 0 {
		files = append(files, authorities("BERTH_RABBITMQ_CA_FILE", c.RabbitMQCAFile))
	}
	if c.ODL.URL != "" {
		files = append(files, authorities("BERTH_ODL_CA_FILE", c.ODL.CAFile))
	}
	if c.Auth == Keystone {
		files = append(files, authorities("OS_CACERT", c.Service.CAFile))
	}
	return named(files)
}

// CertificateFiles returns the files with certificates that the command line uses for the API.
func (c Client) CertificateFiles() []CertificateFile {
	return named([]CertificateFile{
		authorities("BERTH_CA_FILE", c.CAFile),
		{Setting: "BERTH_CLIENT_CERT_FILE", Path: c.CertFile},
	})
}

// databaseFiles returns the files that the parameters of a database URL name, or else the variables of
// PostgreSQL's clients.
func databaseFiles(setting, database string, environ []string) []CertificateFile {
	if database == "" {
		return nil
	}
	_, query, _ := strings.Cut(database, "?")
	parameters, _ := url.ParseQuery(query) // the connection reports what is wrong in the URL
	own, _ := LookupEnv(environ, "PGSSLCERT")
	own = cmp.Or(parameters.Get("sslcert"), own)
	trusted, _ := LookupEnv(environ, "PGSSLROOTCERT")
	trusted = cmp.Or(parameters.Get("sslrootcert"), trusted)
	if trusted == "system" { // the certificate authorities of the system
		trusted = ""
	}
	return []CertificateFile{
		{Setting: "sslcert of " + setting, Path: own},
		authorities("sslrootcert of "+setting, trusted),
	}
}

func authorities(setting, path string) CertificateFile {
	return CertificateFile{Setting: setting, Path: path, Authorities: true}
}

// named returns the files that have a path.
func named(files []CertificateFile) []CertificateFile {
	return slices.DeleteFunc(files, func(f CertificateFile) bool { return f.Path == "" })
}

// LookupEnv returns the value of a variable of an environment in the form of os.Environ. If a name occurs in
// two pairs, the first pair counts.
func LookupEnv(environ []string, name string) (string, bool) {
	for _, pair := range environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
