package placement

import (
	"mime"
	"net/http"
	"strings"
)

// accepts reports whether the request's Accept header admits the media type kind/subtype. If the Accept
// header is malformed, accepts returns true for every media type.
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

// mediaType returns the media type in the Content-Type header, without parameters such as charset. If the
// request has no Content-Type header, mediaType returns "None".
func mediaType(r *http.Request) string {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return "None"
	}
	media, _, _ := strings.Cut(header, ";")
	return strings.ToLower(strings.TrimSpace(media))
}
