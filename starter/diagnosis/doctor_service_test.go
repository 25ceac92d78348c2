package diagnosis

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestDoctor_AdviceFitsTheAnswerOfTheController(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := 0
		_, _ = fmt.Sscanf(r.URL.Path, "/%d/", &status)
		w.WriteHeader(status)
	}))
	t.Cleanup(plain.Close)
	encrypted := httptest.NewTLSServer(plain.Config.Handler)
	t.Cleanup(encrypted.Close)
	for url, want := range map[string][3]string{
		plain.URL + "/200":       {"ok", "answers", ""},
		plain.URL + "/401":       {"FAIL", "rejects berth's user (401)", "Set BERTH_ODL_USERNAME and BERTH_ODL_PASSWORD."},
		plain.URL + "/403":       {"FAIL", "rejects berth's user (403)", "Set BERTH_ODL_USERNAME and BERTH_ODL_PASSWORD."},
		plain.URL + "/404":       {"FAIL", "answers 404", "Does BERTH_ODL_URL end in /controller/nb/v2/neutron?"},
		plain.URL + "/500":       {"FAIL", "answers 500", "Journal entries wait until it is back. See the log of OpenDaylight."},
		plain.URL + "/502":       {"FAIL", "answers 502", "OpenDaylight is starting or overloaded. Journal entries wait until it is back."},
		plain.URL + "/503":       {"FAIL", "answers 503", "OpenDaylight is starting or overloaded. Journal entries wait until it is back."},
		"http://127.0.0.1:1/200": {"FAIL", "connection refused", "Nothing listens at this address: is OpenDaylight running, and is the port in BERTH_ODL_URL correct?"},
		encrypted.URL + "/200":   {"FAIL", "certificate", "Set BERTH_ODL_CA_FILE to the certificate authority of OpenDaylight"},
		"http" + strings.TrimPrefix(encrypted.URL, "https") + "/200": {"FAIL", "answers 400", "Does BERTH_ODL_URL need https:// instead of http://?"},
		"https" + strings.TrimPrefix(plain.URL, "http") + "/200":     {"FAIL", "HTTP", "does BERTH_ODL_URL need http:// instead of https://?"},
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			s, _ := newSession(t, time.Time{}, "BERTH_ODL_URL="+url)

			found, err := checkODL(t.Context(), s)

			row, _ := resultRow("OpenDaylight", found, err)
			text, _ := row["found"].(string)
			advice, _ := row["next"].(string)
			if row["state"] != want[0] || !strings.Contains(text, want[1]) ||
				!strings.Contains(advice, want[2]) {
				t.Errorf("got %v, want the state %s, the text %q and the advice %q",
					row, want[0], want[1], want[2])
			}
		})
	}
}

func TestDoctor_NovaThatIsOverloadedIsAFailure(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusOK:                 "ok",
		http.StatusMultipleChoices:    "ok",
		http.StatusUnauthorized:       "ok",
		http.StatusNotFound:           "FAIL",
		http.StatusServiceUnavailable: "FAIL",
	} {
		server := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }),
		)
		t.Cleanup(server.Close)
		s, _ := newSession(t, time.Time{}, "BERTH_NOVA_URL="+server.URL)

		found, err := checkNova(t.Context(), s)

		if row, _ := resultRow("Nova", found, err); row["state"] != want {
			t.Errorf("check Nova that answers %d: got %v, want the state %s", status, row, want)
		}
	}
}
