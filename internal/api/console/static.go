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
}).ParseFS(templateFiles, "templates/*.html"))

// assets maps the name of each static file to the hash of its content.
var assets = func() map[string]string {
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		content, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = hashOf(content)
	}
	return all
}()

// asset returns the path of a static file below the path of the console. The path changes when the content of the file changes, so
// browsers may cache the file.
func asset(name string) string { return "/static/" + name + "?v=" + assets[name] }

// serveStatic sends a static file.
func serveStatic(r *http.Request) (int, any, error) {
	name := r.PathValue("file")
	hash, ok := assets[name]
	if !ok {
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "The console has no file %s.", name)
	}
	content, err := staticFiles.ReadFile("static/" + name)
	if err != nil {
		return 0, nil, err
	}
	h := osapi.Header(r.Context())
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return http.StatusOK, content, nil
}
