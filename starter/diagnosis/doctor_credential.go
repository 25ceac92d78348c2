package diagnosis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/starter/cli"
)

// renewAdvice says what to do when a certificate or token expires.
const renewAdvice = "replace it and restart the processes that use it; deploy/certificates.sh renews those of docker-compose.yml"

// checkCredentials warns about certificates and tokens in the settings that expire soon, and fails if one of
// them has expired.
func checkCredentials(_ context.Context, s *cli.Session) (string, error) {
	all, err := s.Credentials()
	if err != nil {
		return "", err
	}
	var expired, soon, unreadable []string
	var first time.Time
	var next string // the first that expires
	for _, c := range all {
		v, err := c.Validity()
		name := c.Setting
		if c.File != "" {
			name += " (" + c.File + ")"
		}
		until := fmt.Sprintf("%s expires at %s", name, v.NotAfter.UTC().Format(time.RFC3339))
		switch {
		case err != nil:
			unreadable = append(unreadable, fmt.Sprintf("%s cannot be read: %s", c.Setting, err))
		case v.Expired(s.Now()):
			expired = append(expired, fmt.Sprintf("%s has expired at %s", name, v.NotAfter.UTC().Format(time.RFC3339)))
		case v.ExpiresSoon(s.Now()):
			soon = append(soon, fmt.Sprintf("%s, in %s", until, v.NotAfter.Sub(s.Now()).Round(time.Minute)))
		case !v.NotAfter.IsZero() && (next == "" || v.NotAfter.Before(first)):
			first, next = v.NotAfter, until
		}
	}
	problems := slices.Concat(expired, soon, unreadable)
	switch {
	case len(expired) > 0:
		return "", cli.Errorf(cli.ExitOther, "For each of them: "+renewAdvice+".", "%s", strings.Join(problems, "; "))
	case len(problems) > 0:
		return "", fmt.Errorf("%w: %s; %s", errWarning, strings.Join(problems, "; "), renewAdvice)
	case next == "":
		return "", fmt.Errorf("%w: the settings have no certificate and no token that expires", errNotConfigured)
	}
	return "the first to expire: " + next, nil
}
