package osapi

import (
	"net/http"

	"berth/internal/identity"
)

// AdminOnly refuses callers who are not administrators. AdminOnly is for APIs that show the objects of all
// projects.
func AdminOnly(next Handler) Handler {
	return only(identity.Caller.Admin, "This API is for administrators.", next)
}

// AdminOrServiceOnly refuses callers who are neither administrators nor services.
func AdminOrServiceOnly(next Handler) Handler {
	return only(identity.Caller.AdminOrService, "This request is for administrators and services.", next)
}

func only(allowed func(identity.Caller) bool, refusal string, next Handler) Handler {
	return func(r *http.Request) (int, any, error) {
		if !allowed(identity.From(r.Context())) {
			return 0, nil, Fault(http.StatusForbidden, "", "%s", refusal)
		}
		return next(r)
	}
}

// WriteError writes an error as {"error": {"code": 404, "message": "…"}}, the format of berth's own APIs.
func WriteError(w http.ResponseWriter, _ *http.Request, e *Error) {
	type body struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	WriteJSON(w, e.Status, map[string]body{"error": {e.Status, e.Message}})
}
