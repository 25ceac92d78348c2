package diagnosis

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"berth/internal/store/db"
	"berth/starter/cli"
)

// checkAuthentication compares how the API authenticates callers with what the database expects, and with
// BERTH_AUTH if it is set.
func checkAuthentication(ctx context.Context, s *cli.Session) (string, error) {
	var found, modes []string
	add := func(where, mode string) {
		if mode != "" {
			found, modes = append(found, where+" "+mode), append(modes, mode)
		}
	}
	add("BERTH_AUTH", s.Auth)
	add("the API", apiAuthentication(ctx, s))
	if s.DatabaseURL != "" {
		stored, err := db.ReadAuthentication(ctx, s.DatabaseURL)
		if err != nil {
			return "", fmt.Errorf("%w: the check database shows what is wrong with the database",
				errNotConfigured)
		}
		add("the database", stored.Mode)
	}
	slices.Sort(modes)
	switch text := strings.Join(found, ", "); len(slices.Compact(modes)) {
	case 0:
		return "", fmt.Errorf(
			"%w: neither the API nor the database shows how berth authenticates callers",
			errNotConfigured,
		)
	case 1:
		return text, nil
	default:
		return "", cli.Errorf(
			cli.ExitOther,
			"Set the same BERTH_AUTH for every process; `starter authentication set` changes the database. Then restart the processes.",
			"processes with different authentication: %s",
			text,
		)
	}
}

// apiAuthentication returns the value of BERTH_AUTH of the API, or an empty text if it is not known. An API
// with Keystone tells callers without a token where to get one.
func apiAuthentication(ctx context.Context, s *cli.Session) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.API.BaseURL+"/networking/v2.0/networks", nil)
	if err != nil {
		return ""
	}
	res, err := s.API.HTTP.Do(req)
	if err != nil {
		return ""
	}
	_ = res.Body.Close()
	switch {
	case res.StatusCode != http.StatusUnauthorized:
		return ""
	case strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Keystone "):
		return "keystone"
	default:
		return "noauth"
	}
}
