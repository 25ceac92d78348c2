package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Measures of a picture. A picture is a table of small plots.
const (
	point = vg.Inch / 72

	columns    = 3
	plotWidth  = 215 * point
	plotHeight = 165 * point
	padding    = 8 * point
	titleSize  = 9 * point
	labelSize  = 8 * point
	titleWidth = 38   // characters of a line of a title
	headroom   = 1.35 // for the legend
)

var (
	medianColor = color.RGBA{R: 0x00, G: 0x69, B: 0x5c, A: 0xff}
	tailColor   = color.RGBA{R: 0xd8, G: 0x6a, B: 0x1d, A: 0xff}
	gridColor   = color.RGBA{R: 0xe0, G: 0xe0, B: 0xe0, A: 0xff}
)

// canvas is a white area on which a picture is drawn.
type canvas struct {
	target *vgsvg.Canvas
	area   draw.Canvas
}

func newCanvas(width, height vg.Length) canvas {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	c := canvas{target: vgsvg.New(width, height)}
	c.area = draw.New(c.target)
	low, high := c.area.Min, c.area.Max
	c.area.FillPolygon(color.White, []vg.Point{low, {X: high.X, Y: low.Y}, high, {X: low.X, Y: high.Y}})
	return c
}

// svg returns the picture.
func (c canvas) svg() ([]byte, error) {
	var svg bytes.Buffer
	_, err := c.target.WriteTo(&svg)
	// for readers without this font
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,sans-serif;")), err
}

// drawGroup returns the picture of a group: a small plot for each curve.
func drawGroup(sizes []float64, curves []curve) ([]byte, error) {
	rows := (len(curves) + columns - 1) / columns
	c := newCanvas(vg.Length(min(columns, len(curves)))*plotWidth, vg.Length(rows)*plotHeight)
	tiles := draw.Tiles{
		Rows:      rows,
		Cols:      min(columns, len(curves)),
		PadTop:    padding,
		PadBottom: padding,
		PadLeft:   padding,
		PadRight:  padding,
		PadX:      padding,
		PadY:      padding,
	}
	for i, one := range curves {
		p, err := plotOf(sizes, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Title, err)
		}
		p.Draw(tiles.At(c.area, i%columns, i/columns))
	}
	return c.svg()
}

// plotOf returns the plot of a curve. If the curve has a bound, the vertical axis begins at 0, so that the
// line shows how much the value grows. Otherwise the axis is logarithmic as that of the sizes, so that a
// value that grows as the sizes do is a straight line.
func plotOf(sizes []float64, c curve) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = wrap(title(c), titleWidth)
	p.Title.TextStyle.Font.Size = titleSize
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizeTicks(sizes)
	p.X.Min, p.X.Max = sizes[0], sizes[len(sizes)-1]*1.0001
	lowest, highest := extent(c)
	if c.Bound > 0 {
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, headroom*highest, plot.TickerFunc(valueTicks)
	} else {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(powerTicks)
		p.Y.Min, p.Y.Max = powerOfTen(lowest, math.Floor), powerOfTen(1.01*highest, math.Ceil)
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Label.Font.Size = labelSize
		a.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	p.Add(grid)
	for _, l := range []struct {
		name   string
		values []*float64
		color  color.Color
		dashes []vg.Length
	}{
		{"p99", c.P99, tailColor, []vg.Length{3 * point, 2 * point}},
		{"p50", c.Values, medianColor, nil},
	} {
		if l.values == nil {
			continue
		}
		line, points, err := plotter.NewLinePoints(pointsOf(sizes, l.values))
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes, line.Width = l.color, l.dashes, 1.2*point
		points.Color, points.Shape, points.Radius = l.color, draw.CircleGlyph{}, 2*point
		p.Add(line, points)
		if c.P99 != nil {
			p.Legend.Add(l.name, line, points)
		}
	}
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = labelSize
	p.Legend.ThumbnailWidth = 14 * point
	return p, nil
}

// title returns the title of a plot: that of the curve without Markdown, the unit, and how much it grows.
func title(c curve) string {
	text := fmt.Sprintf("%s, %s", strings.ReplaceAll(c.Title, "`", ""), c.Unit)
	if c.Bound > 0 {
		return fmt.Sprintf("%s (×%.2f, bound ×%.1f)", text, c.Ratio, c.Bound)
	}
	return fmt.Sprintf("%s (×%.2f)", text, c.Ratio)
}

// wrap breaks a text into lines of at most n characters, if its words are not longer.
func wrap(text string, n int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > n {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}

// pointsOf returns the measured points.
func pointsOf(sizes []float64, values []*float64) plotter.XYs {
	var all plotter.XYs
	for i, v := range values {
		if v != nil {
			all = append(all, plotter.XY{X: sizes[i], Y: *v})
		}
	}
	return all
}

// extent returns the lowest and the highest value of a curve, or 1 if the curve has no value.
func extent(c curve) (lowest, highest float64) {
	var all []float64
	for _, v := range append(slices.Clone(c.Values), c.P99...) {
		if v != nil {
			all = append(all, *v)
		}
	}
	if len(all) == 0 {
		return 1, 1
	}
	return slices.Min(all), slices.Max(all)
}

// powerOfTen returns the power of ten below or above a value, as the function rounds.
func powerOfTen(v float64, round func(float64) float64) float64 {
	return math.Pow(10, round(math.Log10(v)))
}

// powerTicks labels the powers of ten.
func powerTicks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for v := low; v <= 1.001*high; v *= 10 {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", v)})
	}
	return ticks
}

// sizeTicks labels the measured sizes.
func sizeTicks(sizes []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, s := range sizes {
		ticks = append(ticks, plot.Tick{Value: s, Label: sizeLabel(s)})
	}
	return ticks
}

func sizeLabel(size float64) string {
	switch {
	case size >= 1e6:
		return fmt.Sprintf("%g M", size/1e6)
	case size >= 1e3:
		return fmt.Sprintf("%g k", size/1e3)
	default:
		return fmt.Sprintf("%g", size)
	}
}

// valueTicks labels 0 and round values up to the end of the axis.
func valueTicks(low, high float64) []plot.Tick {
	const intervals = 4
	step := math.Pow(10, math.Floor(math.Log10(high/intervals)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if factor*step*intervals >= high {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for i := 0; low+float64(i)*step <= high; i++ {
		v := low + float64(i)*step
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", v)})
	}
	return ticks
}
