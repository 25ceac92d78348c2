package server

import (
	"berth/internal/store"
)

// Store returns the app's store.
func (a *App) Store() *store.Store { return a.store }

// DatabaseURL returns the URL of the app's database.
func (a *App) DatabaseURL() string { return a.cfg.DatabaseURL }
