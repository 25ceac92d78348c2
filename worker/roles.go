package main

import "context"

func (a *app) startRelay(context.Context, func(error)) (stop func()) { return func() {} }

func (a *app) startWorking(ctx context.Context, fail func(error)) (stop func()) {
	go func() {
		if err := awaitTemporal(ctx, a.temporal); err == nil {
			a.working.Store(true)
		}
	}()
	return func() {}
}
