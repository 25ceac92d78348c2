package placement

import (
	"mime"
	"net/http"
	"strings"
)

// accepts tells whether a client takes answers of a media type, given as its two halves.
func accepts(r *http.Request, kind, subtype string) bool {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return true
	}
	for offer := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(offer)
		if err != nil || refusal(params["q"]) {
			continue
		}
		if media == "*/*" || media == kind+"/*" || media == kind+"/"+subtype {
			return true
		}
	}
	return false
}

// refusal tells whether a quality value is zero: "not this one".
func refusal(q string) bool {
	return q != "" && strings.Trim(q, "0.") == ""
}

// mediaType is the Content-Type without its parameters, "None" without one.
func mediaType(r *http.Request) string {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return "None"
	}
	media, _, _ := strings.Cut(header, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
