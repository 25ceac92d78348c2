package safeurl_test

import (
	"testing"

	"berth/internal/safeurl"
)

func TestRedact_HidesUserAndPassword(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                            "",
		"no URL: ann@example.org":                     "no URL: ann@example.org",
		"http://odl:8181/x?y":                         "http://odl:8181/x?y",
		"http://ann:hunter2@odl:8181/x":               "http://(secret)@odl:8181/x",
		"https://token@hook.example/":                 "https://(secret)@hook.example/",
		"amqp://a:b@h1:5672/,amqps://c:d@h2/v":        "amqp://(secret)@h1:5672/,amqps://(secret)@h2/v",
		`Get "http://ann:***@odl:8181/x": dial tcp`:   `Get "http://(secret)@odl:8181/x": dial tcp`,
		"postgres://ann:a/b?c#d@h/db is wrong":        "postgres://(secret)@h/db is wrong",
		"postgres://ann:p@ss@h/db":                    "postgres://(secret)@h/db",
		"http://(secret)@odl:8181/x":                  "http://(secret)@odl:8181/x",
		"first http://a:b@c, then http://d/e by f@g.": "first http://(secret)@c, then http://d/e by f@g.",
	} {
		if got := safeurl.Redact(text); got != want {
			t.Errorf("redact %q: got %q, want %q", text, got, want)
		}
	}
}

func TestRedactValue_HidesUserPasswordAndQuery(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                               "",
		"https://hook.example/in":        "https://hook.example/in",
		"https://hook.example/in?key=s":  "https://hook.example/in?(secret)",
		"hook.example/in?key=s":          "hook.example/in?(secret)",
		"ann:hunter2@hook.example?key=s": "(secret)@hook.example?(secret)",
		"postgres://ann:a/b?c@h/db?x=y":  "postgres://(secret)@h/db?(secret)",
		"https://hook.example/in?to=a@b": "https://(secret)@b",
	} {
		if got := safeurl.RedactValue(value); got != want {
			t.Errorf("redact the value %q: got %q, want %q", value, got, want)
		}
	}
}
