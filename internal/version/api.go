package version

import (
	"fmt"
	"strings"
)

// PlacementMinor is the minor number of the newest microversion of the Placement API.
const PlacementMinor = 39

// The HTTP APIs of berth.
var (
	Agent      = single("agent", "v1")
	Journal    = single("journal", "v1")
	Networking = single("networking", "v2.0")
	Operator   = single("operator", "v1")
	Placement  = API{Name: "placement", Minimum: "1.0", Newest: fmt.Sprintf("1.%d", PlacementMinor)}
	// Reservation has the microversion of Blazar's API v1.
	Reservation = single("reservation", "1.0")
)

// API is an HTTP API with the versions that the program speaks: the microversions of an API that has them,
// otherwise the version in the paths.
type API struct {
	Name    string `json:"name"`
	Minimum string `json:"minimum"` // oldest version
	Newest  string `json:"newest"`
}

// APIs returns all HTTP APIs, sorted by name.
func APIs() []API { return []API{Agent, Journal, Networking, Operator, Placement, Reservation} }

// APIText lists all HTTP APIs with their versions in one line.
func APIText() string {
	var all []string
	for _, a := range APIs() {
		all = append(all, a.String())
	}
	return strings.Join(all, ", ")
}

func (a API) String() string {
	if a.Minimum == a.Newest {
		return a.Name + " " + a.Newest
	}
	return a.Name + " " + a.Minimum + " to " + a.Newest
}

// single returns an API with only one version.
func single(name, version string) API { return API{Name: name, Minimum: version, Newest: version} }
