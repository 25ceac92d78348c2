package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"berth/internal/api/openapi"
	"berth/internal/api/osapi"
	"berth/internal/payloadcodec"
)

// codecPath is the path of the codec server below the prefix of the operators' API.
const codecPath = "/codec"

// codecPrefix is the path of the codec server, which is the value of the flag --codec-endpoint of the
// temporal command line without the address.
const codecPrefix = "/" + operatorPrefix + codecPath

// bearer is the prefix of the header Authorization.
const bearer = "Bearer "

// codecRoutes returns the routes of the codec server, with which Temporal's UI and command line show
// encrypted payloads in clear text. They speak the protocol of Temporal's remote codecs. Without keys, the
// routes answer 409.
func codecRoutes(c payloadcodec.Codec) []osapi.Route {
	route := func(name string, convert func([]*common.Payload) ([]*common.Payload, error)) osapi.Route {
		return osapi.Route{
			Method:     http.MethodPost,
			Path:       codecPath + "/" + name,
			LargeBody:  true,
			Repeatable: true,
			Unaudited:  true, // a page of Temporal's UI sends many requests, which change nothing
			Handle: osapi.AdminOnly(func(r *http.Request) (int, any, error) {
				payloads, err := readPayloads(r)
				if err != nil {
					return 0, nil, err
				}
				if !c.HasKeys() {
					return 0, nil, osapi.Fault(
						http.StatusConflict,
						"",
						"This process has no keys for payloads in Temporal; set %s.",
						payloadcodec.Setting,
					)
				}
				return convertPayloads(payloads, convert)
			}),
		}
	}
	return []osapi.Route{route("encode", c.Encode), route("decode", decodeEach(c))}
}

// decodeEach returns a function that decrypts payloads, and returns those that cannot be decrypted unchanged,
// so that a page of Temporal's UI shows the others. If none can be decrypted, the function returns an error.
func decodeEach(c payloadcodec.Codec) func([]*common.Payload) ([]*common.Payload, error) {
	return func(payloads []*common.Payload) ([]*common.Payload, error) {
		all, failed := slices.Clone(payloads), []error{}
		for i, p := range payloads {
			decoded, err := c.Decode([]*common.Payload{p})
			if err != nil {
				failed = append(failed, err)
				continue
			}
			all[i] = decoded[0]
		}
		if len(failed) > 0 && len(failed) == len(payloads) {
			return nil, failed[0]
		}
		return all, nil
	}
}

// maxPayloads is the maximum number of payloads in a request. Temporal's UI and command line send the
// payloads of one event at a time.
const maxPayloads = 1000

// readPayloads reads the payloads in the body of a request. They have the JSON form of protocol buffers,
// which has more fields than berth reads.
func readPayloads(r *http.Request) ([]*common.Payload, error) {
	raw, err := osapi.Body(r)
	if err != nil {
		return nil, err
	}
	if err := osapi.CheckJSON(raw); err != nil {
		return nil, osapi.Fault(http.StatusBadRequest, "", "Malformed JSON: %s", err)
	}
	var in common.Payloads
	if err := protojson.Unmarshal(raw, &in); err != nil {
		return nil, osapi.Fault(http.StatusBadRequest, "", "The body must be the payloads of Temporal in JSON.")
	}
	if len(in.GetPayloads()) > maxPayloads {
		return nil, osapi.Fault(http.StatusBadRequest, "", "The list payloads has more than %d items.", maxPayloads)
	}
	return in.GetPayloads(), nil
}

// convertPayloads answers a request with its payloads after their conversion.
func convertPayloads(
	payloads []*common.Payload,
	convert func([]*common.Payload) ([]*common.Payload, error),
) (int, any, error) {
	converted, err := convert(payloads)
	if err != nil {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "%s", err)
	}
	out, err := protojson.Marshal(&common.Payloads{Payloads: converted})
	return http.StatusOK, json.RawMessage(out), err
}

// codecOperations describes the routes of codecRoutes.
func codecOperations() []openapi.Operation {
	payloads := openapi.Object(openapi.Fields{"payloads": openapi.Array(openapi.Object(openapi.Fields{
		"metadata": openapi.Map(openapi.String()),
		"data":     openapi.String(),
	}, "metadata", "data").Named("Payload"))}, "payloads")
	operation := func(name, summary string) openapi.Operation {
		return openapi.Operation{
			Method:    http.MethodPost,
			Path:      codecPath + "/" + name,
			Summary:   summary,
			Body:      payloads,
			Responses: openapi.Returns(http.StatusOK, payloads),
		}
	}
	return []openapi.Operation{
		operation("encode", "Encrypt payloads for Temporal."),
		operation("decode", "Decrypt payloads of Temporal."),
	}
}

// withCodecClients lets Temporal's UI and command line use the codec server of the handler h: they send the
// token in the header Authorization, and only pages of Temporal's UI may read the answers in a browser. All
// requests to other paths are passed to the handler `others`.
func (a *App) withCodecClients(h, others http.Handler) http.Handler {
	codec := osapi.CORS{
		Origins: originOf(a.cfg.TemporalUI),
		MaxAge:  a.cfg.CORS.MaxAge,
		Methods: []string{http.MethodPost},
		Headers: []string{"Authorization", "X-Auth-Token", "X-Namespace"},
	}.Wrap(withBearerToken(h))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, codecPrefix+"/") {
			codec.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// withBearerToken returns a handler that accepts a token in the header Authorization, too.
func withBearerToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), bearer)
		if ok && r.Header.Get("X-Auth-Token") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("X-Auth-Token", token)
		}
		h.ServeHTTP(w, r)
	})
}

// originOf returns the origin of the pages below a URL; none for an empty URL.
func originOf(page string) []string {
	u, err := url.Parse(page)
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{u.Scheme + "://" + strings.ToLower(u.Host)}
}
