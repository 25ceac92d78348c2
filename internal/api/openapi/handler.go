package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Path is the path below which the documents are served.
const Path = "/openapi/"

// Document is an OpenAPI document as JSON.
type Document struct {
	Name, Title string
	JSON        []byte
}

// Handlers returns a handler for each document, and one for the list of the documents, by path. The handlers
// answer every caller, as the discovery documents of the APIs do.
func Handlers(documents []Document) map[string]http.HandlerFunc {
	type entry struct {
		Name  string `json:"name"`
		Title string `json:"title"`
		Href  string `json:"href"`
	}
	index := []entry{}
	handlers := map[string]http.HandlerFunc{}
	for _, d := range documents {
		path := Path + d.Name + ".json"
		handlers[path] = serve(d.JSON)
		index = append(index, entry{d.Name, d.Title, path})
	}
	slices.SortFunc(index, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	raw, err := json.Marshal(map[string]any{"documents": index})
	if err != nil {
		// impossible: the list has only strings
		panic("openapi: encode the list of documents: " + err.Error())
	}
	handlers[Path] = serve(raw)
	handlers[strings.TrimSuffix(Path, "/")] = handlers[Path]
	return handlers
}

// serve returns a handler that sends a JSON text with an ETag, so that a client with the same text gets a
// 304.
func serve(raw []byte) http.HandlerFunc {
	sum := sha256.Sum256(raw)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", "no-cache")
		for offer := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
			if offer = strings.TrimPrefix(strings.TrimSpace(offer), "W/"); offer == tag || offer == "*" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	}
}
