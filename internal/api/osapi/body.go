package osapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"berth/internal/text"
)

// Limits of a request's body, in bytes.
const (
	MaxBody  = 1 << 20
	MaxBatch = 8 << 20
)

// maxDepth is the maximum nesting of a JSON body. No schema of berth's APIs needs 64 levels, and parsing 64
// levels needs only a small part of the goroutine's stack.
const maxDepth = 64

// maxTokens is the maximum number of keys and values in each MaxBody bytes of a JSON body. Parsing takes time
// for each of them, however short they are. In the largest bodies of real clients, which contain names and
// UUIDs, a key or value has at least 11 bytes on average.
const maxTokens = 100_000

// maxItems is the maximum number of items in any array of a JSON body. It protects arrays for which the API
// has no lower limit of its own.
const maxItems = 10_000

// IsJSON reports whether a Content-Type is application/json, with or without parameters such as a charset.
func IsJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// RequireJSON is the Before of an API that answers 415 to a write whose body is not application/json.
// A page of another site can make a browser send a body, but with this media type only if CORS allows it.
func RequireJSON(r *http.Request) (*http.Request, error) {
	header := r.Header.Get("Content-Type")
	if r.Method != http.MethodGet && r.ContentLength != 0 && !IsJSON(header) {
		return nil, Fault(http.StatusUnsupportedMediaType, "",
			"The Content-Type of the body is %q; it must be application/json.", header)
	}
	return r, nil
}

// Body reads the request's body. If the body cannot be read, Body returns the error of BodyError.
func Body(r *http.Request) ([]byte, error) {
	received, ok := r.Body.(*receivedBody)
	if !ok {
		receiveBody(r)
		received = r.Body.(*receivedBody)
	}
	if received.err != nil {
		return nil, BodyError(received.err, "The request body could not be read.")
	}
	return received.raw, nil
}

// receivedBody is a request's body that has been read from the connection.
type receivedBody struct {
	io.Closer
	raw    []byte
	err    error // why the rest could not be read; nil: raw is the whole body
	unread []byte
}

// receiveBody reads the request's body from the connection. Whoever reads the body afterwards gets the same
// bytes and the same error, without waiting for the client.
func receiveBody(r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	r.Body = &receivedBody{
		Closer: r.Body,
		raw:    raw,
		err:    err,
		unread: raw,
	}
}

// Read implements io.Reader.
func (b *receivedBody) Read(p []byte) (int, error) {
	n := copy(p, b.unread)
	b.unread = b.unread[n:]
	switch {
	case n > 0 || len(p) == 0:
		return n, nil
	case b.err != nil:
		return 0, b.err
	default:
		return 0, io.EOF
	}
}

// forgetBody frees the memory of a body that receiveBody has read.
func forgetBody(r *http.Request) {
	if b, ok := r.Body.(*receivedBody); ok {
		b.raw, b.unread = nil, nil
	}
}

// BodyError returns the error response for an error of reading the request's body: a 413 if the body is too
// large, a 503 while the bodies of other requests use the whole memory limit, a 429 while those of the same
// client use its part of the memory limit, and otherwise a 400 with the given message.
func BodyError(err error, message string) *Error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return Fault(http.StatusRequestEntityTooLarge, "", "The request body is larger than %d bytes.",
			tooLarge.Limit)
	case errors.Is(err, errBodiesFull):
		return Fault(http.StatusServiceUnavailable, "",
			"The server reads too many requests at the same time. Try again later.").RetryIn(1)
	case errors.Is(err, errShareFull):
		return Fault(http.StatusTooManyRequests, "",
			"The server already reads other large requests of this client. Try again later.").RetryIn(1)
	default:
		return Fault(http.StatusBadRequest, "", "%s", message)
	}
}

// Decode reads the request's body as one JSON value into v, a struct or a map. If the body contains malformed
// JSON, duplicate keys, deep nesting, data after the value, unknown fields or wrong types, Decode returns a
// 400 that describes the error.
func Decode(r *http.Request, v any) error {
	raw, err := Body(r)
	if err != nil {
		return err
	}
	if err := CheckJSON(raw); err != nil {
		return Fault(http.StatusBadRequest, "", "Malformed JSON: %s", err)
	}
	return DecodeStrict(raw, v)
}

// DecodeStrict reads JSON into v and refuses unknown fields and wrong types with a 400.
func DecodeStrict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var typ *json.UnmarshalTypeError
	var fault *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &typ):
		return Fault(http.StatusBadRequest, "", "Invalid input: %s is not of type %s.",
			fieldOr(typ.Field, "the body"), typ.Type)
	default:
		return Fault(http.StatusBadRequest, "", "Invalid input: %s.", trimJSONPrefix(err))
	}
}

func fieldOr(field, other string) string {
	if field == "" {
		return other
	}
	return "'" + field + "'"
}

func trimJSONPrefix(err error) string {
	return string(bytes.TrimPrefix([]byte(err.Error()), []byte("json: ")))
}

// CheckJSON returns the error of ParseJSON.
func CheckJSON(raw []byte) error {
	_, err := ParseJSON(raw)
	return err
}

// ParseJSON reads exactly one JSON value in UTF-8: nil, bool, json.Number, string, []any or map[string]any.
// ParseJSON returns an error for duplicate keys, for strings that contain NUL or only one half of a UTF-16
// surrogate pair, for values that are nested deeper than maxDepth, for more keys and values than maxTokens,
// and for arrays with more than maxItems items.
func ParseJSON(raw []byte) (any, error) {
	if err := text.CheckJSONCost(raw, maxDepth, maxTokens*(1+(len(raw)-1)/MaxBody)); err != nil {
		return nil, err
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("not UTF-8 text")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := parseValue(d, "the body")
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("unexpected end of input")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("extra data after the value")
	}
	if hasLoneSurrogate(raw) {
		return nil, errors.New("half of a surrogate pair in a string")
	}
	return v, nil
}

// hasLoneSurrogate reports whether a JSON text contains an escape such as \ud800 for one half of a UTF-16
// surrogate pair without the other half. Package encoding/json would silently replace a lone half of a
// surrogate pair by U+FFFD.
func hasLoneSurrogate(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return false
		}
		if raw = raw[i:]; raw[1] != 'u' {
			raw = raw[2:]
			continue
		}
		first, second := codeUnit(raw), rune(0)
		if raw = raw[6:]; !utf16.IsSurrogate(first) {
			continue
		}
		if bytes.HasPrefix(raw, []byte(`\u`)) {
			second, raw = codeUnit(raw), raw[6:]
		}
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return true
		}
	}
}

// codeUnit returns the UTF-16 code unit of a JSON escape such as \u00e9.
func codeUnit(escape []byte) rune {
	n, _ := strconv.ParseUint(string(escape[2:6]), 16, 16)
	return rune(n)
}

// parseValue reads one value. The parameter `name` is the key of the value, or of the nearest object around
// it that has one.
func parseValue(d *json.Decoder, name string) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	var v any
	switch token {
	case json.Delim('{'):
		v, err = parseObject(d)
	case json.Delim('['):
		v, err = parseArray(d, name)
	default:
		return token, checkText(token)
	}
	if err != nil {
		return nil, err
	}
	_, err = d.Token()
	return v, err
}

func parseObject(d *json.Decoder) (any, error) {
	object := map[string]any{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string)
		if err := checkText(key); err != nil {
			return nil, err
		}
		if _, seen := object[name]; seen {
			return nil, fmt.Errorf("duplicate key %q", name)
		}
		if object[name], err = parseValue(d, name); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func parseArray(d *json.Decoder, name string) (any, error) {
	array := []any{}
	for d.More() {
		if len(array) == maxItems {
			return nil, fmt.Errorf("a list in %q has more than %d items", name, maxItems)
		}
		v, err := parseValue(d, name)
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
	return array, nil
}

// checkText refuses strings that PostgreSQL cannot store.
func checkText(token json.Token) error {
	if s, ok := token.(string); ok && !ValidText(s) {
		return fmt.Errorf("the string %q contains the character NUL", s)
	}
	return nil
}
