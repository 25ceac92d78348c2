package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// failover has what the picture needs of the results of bench/failover.
type failover struct {
	Settings struct {
		Interval float64 `json:"interval_seconds"`
	} `json:"settings"`
	Events []struct {
		At   float64 `json:"at_seconds"`
		Name string  `json:"name"`
	} `json:"events"`
	Intervals []interval `json:"intervals"`
}

// interval counts the answers of an interval.
type interval struct {
	At           float64 `json:"at_seconds"`
	Acknowledged int     `json:"acknowledged"`
	Refused      int     `json:"answers_503"`
	Failed       int     `json:"other_failures"`
}

// Measures of the picture of a failover.
const (
	failoverWidth  = 660 * point
	failoverHeight = 260 * point
)

var failureColor = color.RGBA{R: 0xb3, G: 0x1b, B: 0x1b, A: 0xff}

// drawFailover returns the picture of a failover: the answers per second over time, and a vertical line for
// each step.
func drawFailover(f failover) ([]byte, error) {
	p, err := plotFailover(f)
	if err != nil {
		return nil, err
	}
	canvas := newCanvas(failoverWidth, failoverHeight)
	p.Draw(canvas.area)
	return canvas.svg()
}

func plotFailover(f failover) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "seconds since the first request", "answers per second"
	highest := 0.0
	for _, l := range []struct {
		name   string
		color  color.Color
		dashes []vg.Length
		count  func(interval) int
	}{
		{"acknowledged", medianColor, nil, func(i interval) int { return i.Acknowledged }},
		{"503, try again", tailColor, nil, func(i interval) int { return i.Refused }},
		{"other failures", failureColor, []vg.Length{3 * point, 2 * point}, func(i interval) int { return i.Failed }},
	} {
		var steps plotter.XYs
		for _, i := range f.Intervals {
			rate := float64(l.count(i)) / f.Settings.Interval
			steps = append(steps, plotter.XY{X: i.At, Y: rate})
			highest = max(highest, rate)
		}
		last := steps[len(steps)-1]
		steps = append(steps, plotter.XY{X: last.X + f.Settings.Interval, Y: last.Y})
		line, err := plotter.NewLine(steps)
		if err != nil {
			return nil, err
		}
		line.StepStyle, line.Color, line.Dashes, line.Width = plotter.PostStep, l.color, l.dashes, 1.5*point
		p.Add(line)
		p.Legend.Add(l.name, line)
	}
	p.Y.Min, p.Y.Max = 0, headroom*highest
	p.Legend.Top, p.Legend.Left = true, true // before the first step
	return p, addEvents(p, f, headroom*highest)
}

// addEvents adds a vertical line with its name for each step of the failover.
func addEvents(p *plot.Plot, f failover, top float64) error {
	for i, e := range f.Events {
		line, err := plotter.NewLine(plotter.XYs{{X: e.At, Y: 0}, {X: e.At, Y: top}})
		if err != nil {
			return err
		}
		line.Color, line.Dashes = color.Gray{0x80}, []vg.Length{2 * point, 2 * point}
		// one below the other, because the steps may be close to each other
		at := plotter.XY{X: e.At, Y: top * (0.97 - 0.06*float64(i))}
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{at}, Labels: []string{" " + e.Name}})
		if err != nil {
			return err
		}
		p.Add(line, label)
	}
	return nil
}
