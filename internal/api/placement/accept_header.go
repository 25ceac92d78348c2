package placement

import (
	"mime"
	"net/http"
	"strings"
)

// accepts reports whether the request's Accept header admits the media type kind/subtype. A malformed header admits
// everything.
func accepts(r *http.Request, kind, subtype string) bool {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return true
	}
	accepted := false
	for offer := range strings.SplitSeq(header, ",") {
		if strings.TrimSpace(offer) == "" {
			continue
		}
		media, params, err := mime.ParseMediaType(offer)
		if err != nil || !strings.Contains(media, "/") {
			return true
		}
		admits := media == "*/*" || media == kind+"/*" || media == kind+"/"+subtype
		accepted = accepted || admits && !isZeroQuality(params["q"])
	}
	return accepted
}

// isZeroQuality reports whether a quality value is zero, which excludes the media type.
func isZeroQuality(q string) bool {
	return q != "" && strings.Trim(q, "0.") == ""
}

// mediaType returns the Content-Type without its parameters, or "None" without the header.
func mediaType(r *http.Request) string {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return "None"
	}
	media, _, _ := strings.Cut(header, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
