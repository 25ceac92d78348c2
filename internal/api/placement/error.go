package placement

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
	"berth/internal/text"
	"berth/internal/version"
)

// Error codes, which responses contain from microversion 1.23 on.
const (
	undefinedCode      = "placement.undefined_code"
	concurrentUpdate   = "placement.concurrent_update"
	inventoryInUse     = "placement.inventory.inuse"
	duplicateName      = "placement.duplicate_name"
	providerNotFound   = "placement.resource_provider.not_found"
	providerInUse      = "placement.resource_provider.inuse"
	cannotDeleteParent = "placement.resource_provider.cannot_delete_parent"
)

// explanations are the texts, by status, with which every error message begins.
var explanations = map[int]string{
	http.StatusBadRequest:           "The server could not comply with the request since it is either malformed or otherwise incorrect.",
	http.StatusForbidden:            "Access was denied to this resource.",
	http.StatusNotFound:             "The resource could not be found.",
	http.StatusNotAcceptable:        "The resource could not be generated that was acceptable to your browser (content of type %s.",
	http.StatusConflict:             "There was a conflict when trying to complete your request.",
	http.StatusUnsupportedMediaType: "The request media type %s is not supported by this server.",
	http.StatusServiceUnavailable:   "The server is currently unavailable. Please try again at a later time.",
	http.StatusInternalServerError:  "The server has either erred or is incapable of performing the requested operation.",
}

// fault returns an error response that has no error code.
func fault(status int, format string, args ...any) *osapi.Error {
	return osapi.Fault(status, "", format, args...)
}

// translate converts a fault of package internal/inventory to an error response with an HTTP status and an
// error code. translate returns other errors than inventory faults unchanged.
func translate(err error) error {
	var p *inventory.Fault
	if !errors.As(err, &p) {
		return err
	}
	status, code := http.StatusConflict, ""
	switch p.Kind {
	case inventory.Invalid, inventory.UnknownClass:
		status = http.StatusBadRequest
	case inventory.UnknownProvider:
		status, code = http.StatusBadRequest, providerNotFound
	case inventory.Missing:
		status = http.StatusNotFound
	case inventory.ConcurrentUpdate:
		code = concurrentUpdate
	case inventory.InventoryInUse:
		code = inventoryInUse
	case inventory.DuplicateName:
		code = duplicateName
	case inventory.ProviderInUse:
		code = providerInUse
	case inventory.HasChildren:
		code = cannotDeleteParent
	}
	return osapi.Fault(status, code, "%s", p.Message)
}

// prefixMessage puts a prefix before the message of an inventory fault if the fault has one of the given
// kinds. If the list of kinds is empty, prefixMessage puts the prefix before the message of every inventory
// fault.
func prefixMessage(err error, words string, kinds ...inventory.Kind) error {
	var p *inventory.Fault
	if !errors.As(err, &p) {
		return err
	}
	for _, k := range kinds {
		if p.Kind == k {
			return inventory.Faultf(p.Kind, "%s%s", words, p.Message)
		}
	}
	if len(kinds) == 0 {
		return inventory.Faultf(p.Kind, "%s%s", words, p.Message)
	}
	return err
}

// changeKind changes the kind of an inventory fault from `from` to `to`. If the error is not an inventory
// fault of the kind `from`, changeKind returns the error unchanged.
func changeKind(err error, from, to inventory.Kind) error {
	var p *inventory.Fault
	if errors.As(err, &p) && p.Kind == from {
		return inventory.Faultf(to, "%s", p.Message)
	}
	return err
}

// explain returns the explanation of a status. The explanations of the statuses 406 and 415 contain the media
// type that berth refused or requires.
func explain(r *http.Request, status int) string {
	const maxMediaType = 100 // maximum length of the name of a media type, in characters
	media := mediaType(r)
	switch {
	case status == http.StatusNotAcceptable && r.Header.Get("Accept") == "":
		media = "application/json"
	case status == http.StatusNotAcceptable:
		media = r.Header.Get("Accept")
	case status != http.StatusUnsupportedMediaType:
		return explanations[status]
	}
	return fmt.Sprintf(explanations[status], text.Excerpt(media, maxMediaType))
}

// fail writes an error as JSON, HTML or plain text, depending on what the client accepts. A 401 is always
// JSON.
func fail(w http.ResponseWriter, r *http.Request, e *osapi.Error) {
	title := http.StatusText(e.Status)
	if e.Status == http.StatusUnauthorized {
		osapi.WriteJSON(w, e.Status, map[string]string{
			"message": e.Message, "code": fmt.Sprintf("%d %s", e.Status, title), "title": title})
		return
	}
	explanation, message := explain(r, e.Status), strings.ReplaceAll(e.Message, "\n", " ")
	if explanation == "" || explanation == message {
		explanation, message = e.Message, ""
	}
	switch {
	case accepts(r, "application", "json"):
		osapi.WriteJSON(w, e.Status,
			map[string]any{"errors": []any{errorObject(r, e, title, explanation, message)}})
	case accepts(r, "text", "html"):
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		osapi.WriteJSON(w, e.Status, fmt.Appendf(
			nil,
			"<html>\n<head><title>%d %s</title></head>\n<body>\n<h1>%d %s</h1>\n%s<br /><br />\n%s\n</body>\n</html>",
			e.Status, title, e.Status, title, html.EscapeString(explanation),
			html.EscapeString(message),
		))
	default:
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		osapi.WriteJSON(w, e.Status,
			fmt.Appendf(nil, "%d %s\n\n%s\n\n%s", e.Status, title, explanation, message))
	}
}

func errorObject(r *http.Request, e *osapi.Error, title, explanation, message string) map[string]any {
	object := map[string]any{
		"status":     e.Status,
		"title":      title,
		"detail":     explanation + "\n\n " + message + "  ",
		"request_id": osapi.RequestID(r.Context()),
	}
	if e.Type == unacceptableVersion {
		object["min_version"], object["max_version"] = version.Placement.Minimum, version.Placement.Newest
		return object
	}
	// the error may have occurred before the microversion was negotiated
	if minor, err := negotiate(r); err == nil && minor >= 23 {
		object["code"] = e.Type
		if e.Type == "" {
			object["code"] = undefinedCode
		}
	}
	return object
}
