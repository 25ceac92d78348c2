package server_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"berth/internal/server"
	"berth/internal/server/servertest"
)

// encryptionKey is a key of 32 bytes in Base64.
const encryptionKey = "b2xkLW9sZC1vbGQtb2xkLW9sZC1vbGQtb2xkLW9sZCE="

const (
	temporalUI = "https://temporal.example.com"
	uiSetting  = "BERTH_TEMPORAL_UI_URL=" + temporalUI
)

// clearText is a payload in the JSON form of Temporal's remote codecs.
const clearText = `{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"InNlY3JldCI="}]}`

// callCodec sends a request to the codec server, and returns the answer and its body.
func callCodec(t *testing.T, a *server.App, method, name, token, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(
		t.Context(),
		method,
		"http://"+a.Address()+"/operator/v1/codec/"+name,
		strings.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", temporalUI)
	if method == http.MethodOptions {
		r.Header.Set("Access-Control-Request-Method", http.MethodPost)
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-namespace")
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	answer, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w, string(answer)
}

func TestCodecServer_EncryptsAndDecrypts(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api", uiSetting, "BERTH_TEMPORAL_ENCRYPTION_KEYS="+encryptionKey)
	w, encrypted := callCodec(t, a, http.MethodPost, "encode", "Bearer admin", clearText)
	if w.StatusCode != http.StatusOK || strings.Contains(encrypted, "InNlY3JldCI=") {
		t.Errorf("encode: got %s %s, want an encrypted payload", w.Status, encrypted)
	}
	w, decrypted := callCodec(t, a, http.MethodPost, "decode", "Bearer admin", encrypted)
	var got, want common.Payloads
	if err := errors.Join(
		protojson.Unmarshal([]byte(decrypted), &got),
		protojson.Unmarshal([]byte(clearText), &want),
	); err != nil {
		t.Fatalf("decode the answer %s: %v", decrypted, err)
	}
	if w.StatusCode != http.StatusOK || !proto.Equal(&got, &want) {
		t.Errorf("decode: got %s %s, want %s", w.Status, decrypted, clearText)
	}
}

func TestCodecServer_DecryptsTheOthersBesideADamagedPayload(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api", uiSetting, "BERTH_TEMPORAL_ENCRYPTION_KEYS="+encryptionKey)
	_, encrypted := callCodec(t, a, http.MethodPost, "encode", "Bearer admin", clearText)
	const damaged = `{"metadata":{"encoding":"YmluYXJ5L2VuY3J5cHRlZA==","encryption-key-id":"MTI="},"data":"eA=="}`
	body := `{"payloads":[` + damaged + `,` + strings.TrimPrefix(encrypted, `{"payloads":[`)
	w, decrypted := callCodec(t, a, http.MethodPost, "decode", "Bearer admin", body)
	var got, want common.Payloads
	if err := errors.Join(
		protojson.Unmarshal([]byte(decrypted), &got),
		protojson.Unmarshal([]byte(`{"payloads":[`+damaged+`,`+strings.TrimPrefix(clearText, `{"payloads":[`)), &want),
	); err != nil {
		t.Fatalf("decode the answer %s: %v", decrypted, err)
	}
	if w.StatusCode != http.StatusOK || !proto.Equal(&got, &want) {
		t.Errorf("decode a damaged payload and another one: got %s %s, want the other one as clear text",
			w.Status, decrypted)
	}
}

func TestCodecServer_IsForAdministratorsOnly(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api", uiSetting, "BERTH_TEMPORAL_ENCRYPTION_KEYS="+encryptionKey)
	for token, want := range map[string]int{
		"":                 http.StatusUnauthorized,
		"Bearer user:demo": http.StatusForbidden,
		"admin":            http.StatusUnauthorized,
		"Bearer admin":     http.StatusOK,
	} {
		if w, body := callCodec(t, a, http.MethodPost, "decode", token, clearText); w.StatusCode != want {
			t.Errorf("decode with the header Authorization %q: got %s %s, want %d", token, w.Status, body, want)
		}
	}
}

func TestCodecServer_OnlyOnTheAddressOfOperators(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(
		t,
		"api",
		uiSetting,
		"BERTH_TEMPORAL_ENCRYPTION_KEYS="+encryptionKey,
		"BERTH_OPERATOR_LISTEN=127.0.0.1:0",
	)
	if w, body := callCodec(t, a, http.MethodPost, "decode", "Bearer admin", clearText); w.StatusCode != http.StatusNotFound {
		t.Errorf("decode at BERTH_LISTEN: got %s %s, want 404", w.Status, body)
	}
}

func TestCodecServer_RefusesMalformedAndLargeBodies(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api", uiSetting, "BERTH_TEMPORAL_ENCRYPTION_KEYS="+encryptionKey)
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"no JSON":     {"{", http.StatusBadRequest},
		"another key": {`{"payloads":[{"metadata":{"encoding":"YmluYXJ5L2VuY3J5cHRlZA==","encryption-key-id":"MTI="}}]}`, http.StatusBadRequest},
		"many items":  {`{"payloads":[` + strings.Repeat("{},", 10_000) + "{}]}", http.StatusBadRequest},
		"too large":   {string(bytes.Repeat([]byte(" "), 9<<20)), http.StatusRequestEntityTooLarge},
	} {
		if w, body := callCodec(t, a, http.MethodPost, "decode", "Bearer admin", c.body); w.StatusCode != c.want {
			t.Errorf("decode a body with %s: got %s %s, want %d", name, w.Status, body, c.want)
		}
	}
}

func TestCodecServer_OffWithoutKeys(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api", uiSetting)
	if w, body := callCodec(t, a, http.MethodPost, "decode", "Bearer admin", clearText); w.StatusCode != http.StatusConflict ||
		!strings.Contains(body, "set BERTH_TEMPORAL_ENCRYPTION_KEYS") {
		t.Errorf("decode without keys: got %s %s, want 409 with the setting", w.Status, body)
	}
}

// Pages of other sites, also those that may call the APIs, must not read payloads.
func TestCodecServer_OnlyPagesOfTemporalsUIMayReadAnswers(t *testing.T) {
	t.Parallel()
	keys := "BERTH_TEMPORAL_ENCRYPTION_KEYS=" + encryptionKey
	for name, c := range map[string]struct {
		settings []string
		want     string
	}{
		"UI":       {[]string{"BERTH_TEMPORAL_UI_URL=" + temporalUI + "/ui"}, temporalUI},
		"no UI":    {nil, ""},
		"other UI": {[]string{"BERTH_TEMPORAL_UI_URL=https://ui.example.com"}, ""},
		"API page": {[]string{"BERTH_CORS_ALLOWED_ORIGIN=" + temporalUI}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := servertest.StartApp(t, "api", append(c.settings, keys)...)
			w, _ := callCodec(t, a, http.MethodPost, "decode", "Bearer admin", clearText)
			if got := w.Header.Get("Access-Control-Allow-Origin"); got != c.want {
				t.Errorf("origin that may read the answer: got %q, want %q", got, c.want)
			}
			w, _ = callCodec(t, a, http.MethodOptions, "decode", "", "")
			if got := w.Header.Get("Access-Control-Allow-Origin"); got != c.want {
				t.Errorf("origin in the answer to a preflight request: got %q, want %q", got, c.want)
			}
		})
	}
}
