package osapi

import (
	"net/http"

	"berth/internal/identity"
)

// Administrators lets only them through: to APIs that know every project's objects.
func Administrators(next Handler) Handler {
	return func(r *http.Request) (int, any, error) {
		if !identity.From(r.Context()).Admin() {
			return 0, nil, Fault(http.StatusForbidden, "", "This API is for administrators.")
		}
		return next(r)
	}
}

// FailPlainly writes a refusal as {"error": {"code": 404, "message": "…"}}: the shape of APIs that are berth's own.
func FailPlainly(w http.ResponseWriter, _ *http.Request, e *Error) {
	type body struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	WriteJSON(w, e.Status, map[string]body{"error": {e.Status, e.Message}})
}
