package server

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/config"
	"berth/internal/store/db"
	"berth/internal/version"
)

// logStart writes the first line of the log: the build of this program, and the roles of the process.
func logStart(cfg config.Config) {
	build, schemas := version.Read(), db.Window()
	slog.Info(
		"starting", "version", build.Version, "commit", build.Commit, "commit_date", build.CommitDate, "go", build.Go,
		"schema_minimum", schemas.Minimum, "schema_newest", schemas.Newest, "apis", version.APIText(), "roles", cfg.Roles,
	)
}

// registerBuildMetric registers the metric whose labels describe the build of this program.
func registerBuildMetric(registry prometheus.Registerer) {
	build, schemas := version.Read(), db.Window()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "berth_build_info",
		Help: "Always 1. The labels are the version and the commit of the program, the version of Go, and the newest database schema that the program knows.",
		ConstLabels: prometheus.Labels{
			"version":   build.Version,
			"revision":  build.Commit,
			"goversion": build.Go,
			"schema":    strconv.FormatInt(schemas.Newest, 10),
		},
	})
	info.Set(1)
	registry.MustRegister(info)
}

// workerIdentity returns the identity that Temporal shows for the process: the process ID, the host and the
// version.
func workerIdentity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s/%s", os.Getpid(), host, version.Read().Version)
}
