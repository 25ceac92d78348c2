// Package oslomsg implements the RPC protocol of oslo.messaging over RabbitMQ: the message envelope, a server
// that dispatches calls to methods, the failures that callers raise, and a publisher that waits for
// RabbitMQ's confirms. Package oslomsg does not contain the RPC methods of Neutron, because package rpc
// implements them.
package oslomsg

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"berth/internal/text"
)

const (
	// maxBody is the largest message body that the server decodes, in bytes.
	maxBody = 1 << 20
	// maxDepth is the maximum nesting of the arguments. Those of Neutron's agents have less than 10
	// levels.
	maxDepth = 64
	// maxTokens is the maximum number of keys and values in the arguments. Decoding takes up to 100 bytes
	// for each of them, however short they are. The largest messages of Neutron's agents name 1000 devices.
	maxTokens = 100_000
	// MaxName is the longest name of a queue, exchange or routing key in AMQP 0-9-1 (a short string), in
	// bytes.
	MaxName = 255
)

// maxText is the largest length of a method, a version, a namespace or an ID in a message, in bytes. berth
// keeps them longer than the message: in spans until they are sent, and in the filter of duplicates. The
// longest method of Neutron's agents has 45 bytes, and IDs have 32.
const maxText = 255

// envelopeVersion is the version of oslo.messaging's envelope.
const envelopeVersion = "2.0"

// envelope wraps every message: a JSON object with the message as a JSON string.
type envelope struct {
	Version string `json:"oslo.version"`
	Message string `json:"oslo.message"`
}

// request is an RPC message: a call, whose sender waits for a reply, or a cast, whose sender does not. berth
// ignores the other fields of the request context, whose names begin with _context_, because the sender
// writes them and they prove nothing.
type request struct {
	Method    string          `json:"method"`
	Args      json.RawMessage `json:"args"`
	Version   string          `json:"version"`
	Namespace string          `json:"namespace"`
	UniqueID  string          `json:"_unique_id"`
	MessageID string          `json:"_msg_id"`
	ReplyTo   string          `json:"_reply_q"`
	RequestID json.RawMessage `json:"_context_request_id"` // only for logs, so any type is accepted
}

// reservedQueues is the beginning of the names that are no queues, and that RabbitMQ interprets itself.
// RabbitMQ closes the connection of a client that publishes to such a name in a wrong format, and would
// deliver the call again for ever.
const reservedQueues = "amq.rabbitmq."

// wantsReply reports whether the caller waits for a reply in a queue to which berth can send it.
func (r request) wantsReply() bool {
	return r.MessageID != "" && len(r.MessageID) <= maxText && r.ReplyTo != "" && len(r.ReplyTo) <= MaxName &&
		!strings.HasPrefix(r.ReplyTo, reservedQueues)
}

// decodeRequest decodes a message body. If decodeRequest returns an error, decodeRequest also returns the
// fields that it decoded before the error, because with these fields the server may still be able to reply.
func decodeRequest(body []byte) (request, error) {
	var r request
	if len(body) > maxBody {
		return r, fmt.Errorf("message of more than %d bytes", maxBody)
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return r, fmt.Errorf("envelope: %w", err)
	}
	if major, _, _ := strings.Cut(e.Version, "."); major != "2" {
		return r, fmt.Errorf("unsupported envelope version %.20q", e.Version)
	}
	if err := json.Unmarshal([]byte(e.Message), &r); err != nil {
		return r, fmt.Errorf("message: %w", err)
	}
	switch {
	case r.Method == "":
		return r, errors.New("message without a method")
	case max(len(r.Method), len(r.Version), len(r.Namespace), len(r.UniqueID), len(r.MessageID)) > maxText:
		return r, fmt.Errorf("method, version, namespace or ID of more than %d bytes", maxText)
	case strings.Contains(e.Message, `\u0000`):
		return r, errors.New("message with a NUL character")
	}
	if err := text.CheckJSONCost(r.Args, maxDepth, maxTokens); err != nil {
		return r, fmt.Errorf("arguments: %w", err)
	}
	return r, nil
}

// encodeEnvelope adds a _unique_id to the message and wraps the message in an envelope.
func encodeEnvelope(message map[string]any) ([]byte, error) {
	message["_unique_id"] = newHexID()
	inner, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{envelopeVersion, string(inner)})
}

// encodeReply encodes the reply to a call. The reply contains the failure of the call if the call failed, and
// otherwise the result of the call.
func encodeReply(r request, result any, failure *Failure) ([]byte, error) {
	m := map[string]any{
		"result":  result,
		"failure": nil,
		"ending":  true,
		"_msg_id": r.MessageID,
	}
	if failure != nil {
		text, err := json.Marshal(failure)
		if err != nil {
			return nil, err
		}
		m["result"], m["failure"] = nil, string(text)
	}
	return encodeEnvelope(m)
}

// EncodeCast encodes a cast (a message without a reply) with an administrator's request context.
func EncodeCast(method, version string, args any) ([]byte, error) {
	m := map[string]any{"method": method, "version": version, "args": args}
	for _, k := range []string{"user", "user_id", "user_name", "project", "project_id", "project_name", "tenant_id", "tenant_name", "system_scope",
		"domain", "user_domain", "project_domain", "auth_token", "global_request_id", "resource_uuid"} {
		m["_context_"+k] = nil
	}
	m["_context_is_admin"], m["_context_is_admin_project"] = true, true
	m["_context_read_only"], m["_context_show_deleted"] = false, false
	m["_context_roles"], m["_context_request_id"] = []string{}, "req-"+uuid.NewString()
	m["_context_user_identity"] = "- - - - -"
	return encodeEnvelope(m)
}

// newHexID returns a random UUID without dashes, as oslo.messaging writes IDs.
func newHexID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }
