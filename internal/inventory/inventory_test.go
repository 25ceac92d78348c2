package inventory_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/inventory"
)

func with(change func(*inventory.Inventory)) inventory.Inventory {
	i := inventory.Of(10)
	change(&i)
	return i
}

func TestReserveMustLeaveSomething(t *testing.T) {
	t.Parallel()
	const greaterOrEqual, greater = "The reserved value is greater than or equal to total.", "The reserved value is greater than total."
	for name, tc := range map[string]struct {
		i           inventory.Inventory
		strict, lax string
	}{
		"nothing reserved": {inventory.Of(1), "", ""},
		"all reserved":     {with(func(i *inventory.Inventory) { i.Reserved = 10 }), greaterOrEqual, ""},
		"more than all":    {with(func(i *inventory.Inventory) { i.Reserved = 11 }), greaterOrEqual, greater},
		"a small ratio":    {with(func(i *inventory.Inventory) { i.AllocationRatio = 0.05 }), greaterOrEqual, ""},
		"an odd ratio":     {with(func(i *inventory.Inventory) { i.AllocationRatio = 0.1 }), "", ""},
		"a negative ratio": {with(func(i *inventory.Inventory) { i.AllocationRatio = -1 }), greaterOrEqual, greater},
		"truncated to 0":   {with(func(i *inventory.Inventory) { i.AllocationRatio = -0.05 }), greaterOrEqual, ""},
		"an endless ratio": {with(func(i *inventory.Inventory) { i.AllocationRatio = 3.4e38 }), "", ""},
	} {
		if d := cmp.Diff([2]string{tc.strict, tc.lax}, [2]string{tc.i.Sound(false), tc.i.Sound(true)}); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestExpectationOfAConsumer(t *testing.T) {
	t.Parallel()
	one, two := int64(1), int64(2)
	for name, tc := range map[string]struct {
		expect  inventory.Expectation
		current *int64
		want    string
	}{
		"nothing, absent":    {inventory.Expectation{}, nil, ""},
		"nothing, there":     {inventory.Expectation{}, &one, ""},
		"absent, absent":     {inventory.Absent(), nil, ""},
		"absent, there":      {inventory.Absent(), &one, "consumer generation conflict - expected 1 but got None"},
		"at 1, at 1":         {inventory.At(1), &one, ""},
		"at 1, at 2":         {inventory.At(1), &two, "consumer generation conflict - expected 2 but got 1"},
		"at 1, absent":       {inventory.At(1), nil, "consumer generation conflict - expected null but got 1"},
		"at 0, absent":       {inventory.At(0), nil, "consumer generation conflict - expected null but got 0"},
		"at the end, at 1":   {inventory.At(math.MaxInt64), &one, "consumer generation conflict - expected 1 but got 9223372036854775807"},
		"nothing said, gone": {inventory.ConsumerWrite{}.Expect, nil, ""},
	} {
		got := ""
		if err := tc.expect.Check(tc.current); err != nil {
			var p *inventory.Problem
			if !errors.As(err, &p) || p.Kind != inventory.Concurrent {
				t.Errorf("%s: %v is no lost race", name, err)
			}
			got = err.Error()
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestWritesAreJudgedTogether(t *testing.T) {
	t.Parallel()
	key := inventory.Key{Provider: "p", Class: "VCPU"}
	takes := func(amounts ...int64) []inventory.ConsumerWrite {
		var writes []inventory.ConsumerWrite
		for _, n := range amounts {
			writes = append(writes, inventory.ConsumerWrite{Allocations: inventory.Allocations{"p": {"VCPU": n}}})
		}
		return writes
	}
	fractional := with(func(i *inventory.Inventory) { i.AllocationRatio = 0.55 }) // 5.5
	for name, tc := range map[string]struct {
		shelf  inventory.Shelf
		writes []inventory.ConsumerWrite
		ok     bool
	}{
		"all there is":                  {inventory.Shelf{Inventory: inventory.Of(10)}, takes(10), true},
		"one more":                      {inventory.Shelf{Inventory: inventory.Of(10)}, takes(11), false},
		"two that fit":                  {inventory.Shelf{Inventory: inventory.Of(10)}, takes(5, 5), true},
		"two of which each fits":        {inventory.Shelf{Inventory: inventory.Of(10)}, takes(6, 6), false},
		"others have the rest":          {inventory.Shelf{Inventory: inventory.Of(10), Before: 5, Others: 5}, takes(6), false},
		"a part of a unit is none":      {inventory.Shelf{Inventory: fractional}, takes(6), false},
		"the whole part":                {inventory.Shelf{Inventory: fractional}, takes(5), true},
		"overcommitted, shrinks":        {inventory.Shelf{Inventory: inventory.Of(10), Before: 30, Others: 15}, takes(10), true},
		"overcommitted, stays":          {inventory.Shelf{Inventory: inventory.Of(100), Before: 300, Others: 250}, takes(50), true},
		"overcommitted, grows":          {inventory.Shelf{Inventory: inventory.Of(100), Before: 300, Others: 250}, takes(51), false},
		"beyond every number":           {inventory.Shelf{Inventory: inventory.Of(10)}, takes(math.MaxInt64), false},
		"sums beyond every number":      {inventory.Shelf{Inventory: inventory.Of(10)}, takes(5, math.MaxInt64), false},
		"less than the smallest":        {inventory.Shelf{Inventory: with(func(i *inventory.Inventory) { i.MinUnit = 3 })}, takes(2), false},
		"more than the largest":         {inventory.Shelf{Inventory: with(func(i *inventory.Inventory) { i.MaxUnit = 3 })}, takes(4), false},
		"between the steps":             {inventory.Shelf{Inventory: with(func(i *inventory.Inventory) { i.StepSize = 2 })}, takes(3), false},
		"reserved units are not to get": {inventory.Shelf{Inventory: with(func(i *inventory.Inventory) { i.Reserved = 4 })}, takes(7), false},
	} {
		err := inventory.Admit(tc.writes, map[inventory.Key]inventory.Shelf{key: tc.shelf})
		var p *inventory.Problem
		if (err == nil) != tc.ok || err != nil && (!errors.As(err, &p) || p.Kind != inventory.Refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := inventory.Admit(takes(1), nil); err == nil {
		t.Error("an inventory that does not exist was allocated from")
	}
}

func TestOnlyRootsFindAParentBeforeMovesAreAllowed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		current, wanted string
		move, ok        bool
	}{
		{"", "p", false, true}, {"", "", false, true}, {"p", "p", false, true}, {"p", "q", false, false}, {"p", "", false, false},
		{"p", "q", true, true}, {"p", "", true, true},
	} {
		if err := inventory.CheckMove(tc.current, tc.wanted, tc.move); (err == nil) != tc.ok {
			t.Errorf("from %q to %q, moves allowed %v: %v", tc.current, tc.wanted, tc.move, err)
		}
	}
}
