package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/operator"
	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/starter/cli"
)

func TestPolicy_IsListedAndExplained(t *testing.T) {
	t.Parallel()
	rules, err := policy.Open(policy.Options{}, placement.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(openapitest.API(t, operator.Description(), operator.New(operator.Options{
		Identity: identity.Noauth{},
		Policies: map[string]*policy.Policy{"placement": rules},
	})))
	t.Cleanup(server.Close)
	for line, want := range map[string]string{
		"policy list --api placement": "placement placement:usages rule:admin_or_project_reader_or_service_api false\n",
		"policy check service_api --roles reader,service --project p": "allowed service_api\n" +
			"  allowed role:service: the caller has the roles reader, service\n",
		"policy check project_reader_api --subject-token eve:demo --target project_id=other": "denied  project_reader_api\n" +
			"  denied  role:reader and project_id:%(project_id)s\n" +
			"    allowed role:reader: the caller has the roles member, reader\n" +
			"    denied  project_id:%(project_id)s: the caller has the project_id demo, the target's value is 'other'\n",
		"policy check service_api -o json": `"allowed": false`,
	} {
		t.Run(line, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), strings.Fields(line),
				[]string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + server.URL}, &out, &out)
			got := out.String()
			if strings.HasPrefix(line, "policy list") { // the widths of the columns depend on the other rules
				got = regexp.MustCompile(` +`).ReplaceAllString(got, " ")
			}
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("starter %s: got error %v and\n%s, want\n%s", line, err, got, want)
			}
		})
	}
	err = run(t.Context(), []string{"policy", "list", "--api", "other"},
		[]string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + server.URL}, io.Discard, io.Discard)
	if want := `no API is named "other"; use one of placement`; cli.ExitCode(err) != cli.ExitUsage ||
		err.Error() != want {
		t.Errorf("starter policy list --api other: got error %v, want the usage error %q", err, want)
	}
}
