package operator

import (
	"net/http"

	"berth/internal/api/openapi"
	"berth/internal/auditlog"
)

func auditOperations() []openapi.Operation {
	filters := []openapi.Parameter{
		{Name: "project", Description: "The ID of the caller's project.", Schema: openapi.String()},
		{Name: "user", Description: "The ID of the caller.", Schema: openapi.String()},
		{
			Name:        "object",
			Description: "The ID of an object, or its type, a slash and its ID.",
			Schema:      openapi.String(),
		},
		{Name: "outcome", Schema: openapi.Enum(auditlog.Success, auditlog.Denied, auditlog.Omitted)},
		{Name: "since", Description: "Select records of this time or later.", Schema: openapi.Time()},
		{Name: "until", Description: "Select records before this time.", Schema: openapi.Time()},
	}
	paging := []openapi.Parameter{
		{
			Name:        "order",
			Description: "desc: the newest records first (the default); asc: the oldest first.",
			Schema:      openapi.Enum("desc", "asc"),
		},
		{
			Name:        "marker",
			Description: "The value of next_marker on the previous page.",
			Schema:      openapi.Integer(),
		},
		limitQuery,
	}
	hash := openapi.Schema{
		"type":        "string",
		"pattern":     "^[0-9a-f]{64}$",
		"description": "SHA-256 over the hash of the previous record, the sequence number and the record.",
	}
	position := openapi.Object(openapi.Fields{"sequence": openapi.Integer(), "hash": hash}).
		Named("AuditPosition")
	record := openapi.Of[auditlog.Record]().Named("AuditRecord")
	sealed := openapi.Object(openapi.Fields{"sequence": openapi.Integer(), "hash": hash, "record": record}).
		Named("SealedAuditRecord")
	page := openapi.Of[auditlog.Page]().With("audit_records", openapi.Array(sealed)).
		With("anchor", position).
		With("head", position)
	return []openapi.Operation{
		{
			Method:    http.MethodGet,
			Path:      "/audit",
			Summary:   "List records of the audit log.",
			Query:     append(filters, paging...),
			Responses: openapi.Returns(http.StatusOK, page),
		},
		{
			Method:      http.MethodGet,
			Path:        "/audit/export",
			Summary:     "Export records of the audit log as JSON lines, the oldest first.",
			Description: "If berth cannot read all records, it breaks the connection before the end of the answer.",
			Query:       filters,
			Responses: map[int]openapi.Response{
				http.StatusOK: {
					Description: "The records: each line of the body has the schema.",
					Lines:       sealed,
				},
			},
		},
	}
}
