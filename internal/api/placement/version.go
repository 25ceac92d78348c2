package placement

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/version"
)

// newest is the minor number of the newest microversion.
const newest = version.PlacementMinor

// unacceptableVersion is the type of the error whose body lists the supported versions.
const unacceptableVersion = "unacceptable version"

var versionForm = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$`)

// negotiate returns the minor number of the requested microversion.
func negotiate(r *http.Request) (int, error) {
	requested := version.Placement.Minimum
	for pair := range strings.SplitSeq(strings.Join(r.Header.Values("OpenStack-API-Version"), ","), ",") {
		pair = strings.TrimSpace(pair)
		blank := strings.IndexAny(pair, " \t")
		if blank > 0 && strings.EqualFold(pair[:blank], "placement") {
			requested = strings.TrimSpace(pair[blank:])
		}
	}
	if requested == "latest" {
		return newest, nil
	}
	parts := versionForm.FindStringSubmatch(requested)
	if parts == nil {
		return 0, osapi.Fault(http.StatusBadRequest, "",
			"Invalid microversion: invalid version string: %s", requested)
	}
	minor, err := strconv.Atoi(parts[2])
	if parts[1] != "1" || err != nil || minor > newest {
		return 0, osapi.Fault(http.StatusNotAcceptable, unacceptableVersion,
			"Unacceptable version header: %s", requested)
	}
	return minor, nil
}
