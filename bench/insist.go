package main

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
)

// insist repeats a call of Temporal that was late or not taken, for as long as the run has patience: on a slow disk that
// says nothing about what is measured. What is called may thus be done twice.
func insist(ctx context.Context, call func() error) error {
	err := call()
	for begin := time.Now(); passing(err) && ctx.Err() == nil; err = call() {
		if time.Since(begin) > patience {
			return errors.Join(errLate, err)
		}
		pause(ctx, lookEvery)
	}
	return err
}

// passing tells whether an error says no more than that the server has much to do.
func passing(err error) bool {
	var late *serviceerror.DeadlineExceeded
	var away *serviceerror.Unavailable
	var full *serviceerror.ResourceExhausted
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &late) || errors.As(err, &away) || errors.As(err, &full)
}
