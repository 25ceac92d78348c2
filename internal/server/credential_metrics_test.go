package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
	"berth/internal/odl/odltest"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

// credentialExpiries returns the values of berth_credential_expiry_timestamp_seconds, by setting and file.
func credentialExpiries(t *testing.T, a *server.App) map[[2]string]int64 {
	t.Helper()
	families, err := a.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[[2]string]int64{}
	for _, f := range families {
		if f.GetName() != "berth_credential_expiry_timestamp_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			found[[2]string{labels["setting"], labels["file"]}] = int64(m.GetGauge().GetValue())
		}
	}
	return found
}

// A process reads most files only at its start. The metric then has the expiry of the certificates that the
// process uses, whatever the files contain now.
func TestCredentialMetric_HasTheExpiryOfTheCertificatesInUse(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	dir := t.TempDir()
	controller, clients := filepath.Join(dir, "controller.pem"), filepath.Join(dir, "clients.pem")
	write(t, controller, ca.pem())
	write(t, clients, ca.pem())
	a := servertest.StartApp(
		t,
		config.API,
		append(
			newTLSFiles(t, ca, "server").settings(),
			"BERTH_TLS_CLIENT_CA_FILE="+clients,
			"BERTH_ODL_URL="+servertest.Serve(t, odltest.New())+odltest.BasePath,
			"BERTH_ODL_CA_FILE="+controller,
		)...)
	ends := ca.cert.NotAfter.Unix()
	expect := func(when string, want map[[2]string]int64) {
		t.Helper()
		if d := cmp.Diff(want, credentialExpiries(t, a)); d != "" {
			t.Errorf("expiries %s (-want +got):\n%s", when, d)
		}
	}
	atController, ofClients := [2]string{"BERTH_ODL_CA_FILE", controller}, [2]string{"BERTH_TLS_CLIENT_CA_FILE", clients}
	expect("at the start", map[[2]string]int64{atController: ends, ofClients: ends})

	for _, path := range []string{controller, clients} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	expect("without the files", map[[2]string]int64{atController: ends})

	write(t, clients, ca.pem())
	expect("after the file of the clients is back", map[[2]string]int64{atController: ends, ofClients: ends})
}
