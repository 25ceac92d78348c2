package inventory

import "time"

// Provider is something that has inventory: a host, a part of one, or something that hosts share.
type Provider struct {
	UUID       string
	Name       string
	Generation int64
	Parent     string // UUID; empty for a root
	Root       string // UUID; its own for a root
	ChangedAt  time.Time
}

// NewProvider is a provider to be created.
type NewProvider struct {
	UUID   string // canonical
	Name   string
	Parent string // UUID; empty for a root
}
