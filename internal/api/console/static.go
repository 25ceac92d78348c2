package console

import (
	"embed"
	"html/template"
	"mime"
	"net/http"
	"path"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/text"
)

//go:embed static
var staticFiles embed.FS

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"asset": asset,
	"date":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"add":   func(a, b int) int { return a + b },
	"short": text.Excerpt[string],
	"args":  func(all ...any) []any { return all },
}).ParseFS(templateFiles, "templates/*.html"))

// staticFile is a static file with the hash of its content. All answers share the content, because clients
// without a token can ask for it, and can have many answers that they do not read.
type staticFile struct {
	content []byte
	hash    string
}

// assets contains the static files by name.
var assets = func() map[string]staticFile {
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err)
	}
	all := map[string]staticFile{}
	for _, e := range entries {
		content, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = staticFile{content, hashOf(content)}
	}
	return all
}()

// asset returns the path of a static file below the path of the console. The path changes when the content of
// the file changes, so browsers may cache the file.
func asset(name string) string { return "/static/" + name + "?v=" + assets[name].hash }

// serveStatic sends a static file.
func serveStatic(r *http.Request) (int, any, error) {
	name := r.PathValue("file")
	file, ok := assets[name]
	if !ok {
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "The console has no file %s.", name)
	}
	h := osapi.Header(r.Context())
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == file.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return http.StatusOK, osapi.Shared(file.content), nil
}
