package cli

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAPIError_ReadsTheErrorFormatOfEachAPI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   APIError
	}{
		"Neutron": {409, `{"NeutronError": {"type": "PortInUse", "message": "Port is in use.", "detail": ""}}`,
			APIError{Type: "PortInUse", Message: "Port is in use."}},
		"Placement": {409, `{"errors": [{"status": 409, "detail": "Fixed words.\n\n generation moved  ", "code": "placement.concurrent_update"}]}`,
			APIError{Type: "placement.concurrent_update", Message: "generation moved"}},
		"Blazar":           {404, `{"error_code": 404, "error_message": "not found", "error_name": 404}`, APIError{Message: "not found"}},
		"Blazar framework": {404, `{"error": 404, "error_message": "no route"}`, APIError{Message: "no route"}},
		"Keystone":         {401, `{"error": {"code": 401, "title": "Unauthorized", "message": "go away"}}`, APIError{Message: "go away"}},
		"middleware":       {401, `{"message": "Authentication required", "code": "401 Unauthorized"}`, APIError{Message: "Authentication required"}},
		"a list in the form of Python": {400, `{"NeutronError": {"type": "BadRequest", "message": "Allowed values are ['IPv4', 'IPv6']."}}`,
			APIError{Type: "BadRequest", Message: `Allowed values are "IPv4", "IPv6".`}},
		"a filter that Neutron does not have": {400, `{"NeutronError": {"type": "BadRequest", "message": "['stauts'] is invalid attribute for filtering"}}`,
			APIError{Type: "BadRequest", Message: `the objects cannot be filtered by "stauts"`}},
		"a parameter that Placement does not have": {400, `{"errors": [{"detail": "Fixed words.\n\n Invalid query string parameters: Additional properties are not allowed ('x', 'y' were unexpected) Failed validating 'additionalProperties' in schema['properties']"}]}`,
			APIError{Message: "Invalid query string parameters: unknown: 'x', 'y'"}},
		"a page":  {502, `<html>`, APIError{Message: "Bad Gateway"}},
		"nothing": {500, ``, APIError{Message: "Internal Server Error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRecorder()
			r.Header().Set("X-Openstack-Request-Id", "req-1")
			r.WriteHeader(c.status)
			c.want.Status, c.want.RequestID = c.status, "req-1"
			if d := cmp.Diff(&c.want, parseAPIError(r.Result(), []byte(c.body)), cmp.AllowUnexported(APIError{})); d != "" {
				t.Error(d)
			}
		})
	}
}
