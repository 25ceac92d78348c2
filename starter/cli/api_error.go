package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// notReadyMessage lists the failed checks of /readyz that make the process not ready.
func notReadyMessage(checks map[string]string, informational []string) string {
	var failed []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if checks[name] != "ok" && !slices.Contains(informational, name) {
			failed = append(failed, name+": "+checks[name])
		}
	}
	return "not ready: " + strings.Join(failed, "; ")
}

// APIError is an answer of the API with a status other than 2xx.
type APIError struct {
	Status    int
	Type      string // Neutron's type or Placement's code; may be empty
	Message   string
	RequestID string
}

func (r *APIError) Error() string {
	if r.Type == "" || strings.HasSuffix(r.Type, "undefined_code") {
		return fmt.Sprintf("%s (%d)", r.Message, r.Status)
	}
	return fmt.Sprintf("%s (%d %s)", r.Message, r.Status, r.Type)
}

// errorOf converts an HTTP answer to an error. Only errorOf maps HTTP statuses to exit codes of starter and
// to advice for the user.
func (a *Client) errorOf(res *http.Response, raw []byte) error {
	r := parseAPIError(res, raw)
	t := &Error{Code: ExitOther, What: "the API refused the request", Err: r}
	switch r.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		t.Next = "The request is not valid; change what the message names."
	case http.StatusUnauthorized:
		t.Code, t.Next = ExitDenied, "Set --token or BERTH_TOKEN."
	case http.StatusForbidden:
		t.Code, t.Next = ExitDenied, "The token has no permission; use a token of the project that owns the object, or of an admin."
	case http.StatusNotFound:
		t.Code = ExitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		t.Code = ExitConflict
		if strings.HasSuffix(r.Type, "concurrent_update") || r.Status == http.StatusPreconditionFailed {
			t.Next = "The object has changed since it was read: read it again, then repeat with the new generation or revision."
		}
	case http.StatusBadGateway,
		http.StatusServiceUnavailable,
		http.StatusGatewayTimeout,
		http.StatusTooManyRequests:
		t.Code, t.Next = ExitUnavailable, "`starter doctor` shows which service is unavailable."
	default:
		t.Next = "The server's log has more, as request " + r.RequestID + "."
		if r.RequestID == "" {
			t.Next = "Is --url a berth API?"
		}
	}
	return t
}

// parseAPIError parses an error answer in the formats of Neutron, Placement, Blazar, the HTTP API for agents
// (/agent/v1) and /readyz.
func parseAPIError(res *http.Response, raw []byte) *APIError {
	r := &APIError{Status: res.StatusCode, RequestID: res.Header.Get("X-Openstack-Request-Id")}
	var shapes struct {
		NeutronError struct{ Type, Message string }
		Errors       []struct{ Detail, Code string }
		ErrorMessage string `json:"error_message"`
		Message      string
		Error        json.RawMessage
		Checks       map[string]string // of /readyz
		// of /readyz: the checks that do not decide whether the process is ready
		Informational []string
	}
	_ = json.Unmarshal(raw, &shapes)
	var inner struct{ Type, Message string }
	_ = json.Unmarshal(shapes.Error, &inner)
	switch {
	case shapes.NeutronError.Message != "":
		r.Type, r.Message = shapes.NeutronError.Type, shapes.NeutronError.Message
	case len(shapes.Errors) > 0:
		r.Type, r.Message = shapes.Errors[0].Code, placementDetail(shapes.Errors[0].Detail)
	case shapes.ErrorMessage != "":
		r.Message = shapes.ErrorMessage
	case inner.Message != "":
		r.Type, r.Message = inner.Type, inner.Message
	case shapes.Message != "":
		r.Message = shapes.Message
	case len(shapes.Checks) > 0:
		r.Message = notReadyMessage(shapes.Checks, shapes.Informational)
	default:
		r.Message = http.StatusText(res.StatusCode)
	}
	r.Message = inWords(strings.TrimSpace(r.Message))
	return r
}

// Parts of error messages that have the form of Python code. The APIs keep this form, because programs may
// depend on it.
var (
	pythonList      = regexp.MustCompile(`\['[^']*'(?:, '[^']*')*\]`)
	unexpectedNames = regexp.MustCompile(
		`Additional properties are not allowed \((.*) (was|were) unexpected\)`,
	)
	schemaValidation = regexp.MustCompile(` Failed validating '.*$`)
	unknownFilter    = regexp.MustCompile(`^(".*") is invalid attribute for filtering$`)
)

// inWords returns an error message without Python's forms of lists and without the part of the schema that a
// request violates.
func inWords(message string) string {
	message = schemaValidation.ReplaceAllString(message, "")
	message = pythonList.ReplaceAllStringFunc(message, func(list string) string {
		return strings.ReplaceAll(strings.Trim(list, "[]"), "'", `"`)
	})
	message = unexpectedNames.ReplaceAllString(message, "unknown: $1")
	return unknownFilter.ReplaceAllString(message, "the objects cannot be filtered by $1")
}

// placementDetail removes the fixed text that Placement puts before the message of every error.
func placementDetail(detail string) string {
	if _, message, found := strings.Cut(detail, "\n\n"); found && strings.TrimSpace(message) != "" {
		return strings.TrimSpace(message)
	}
	return detail
}

// IsStatus reports whether `err` is an APIError with the given HTTP status.
func IsStatus(err error, status int) bool {
	var r *APIError
	return errors.As(err, &r) && r.Status == status
}
