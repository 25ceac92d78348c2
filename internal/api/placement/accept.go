package placement

import (
	"mime"
	"net/http"
	"strings"
)

// accepts tells whether a client takes answers of a media type, given as its two halves. A header that is nonsense
// counts for nothing.
func accepts(r *http.Request, kind, subtype string) bool {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return true
	}
	taken := false
	for offer := range strings.SplitSeq(header, ",") {
		if strings.TrimSpace(offer) == "" {
			continue
		}
		media, params, err := mime.ParseMediaType(offer)
		if err != nil || !strings.Contains(media, "/") {
			return true
		}
		suits := media == "*/*" || media == kind+"/*" || media == kind+"/"+subtype
		taken = taken || suits && !refusal(params["q"])
	}
	return taken
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
