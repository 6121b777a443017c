package train

import (
	"math"
	"math/rand/v2"
	"os"

	"overcomplete/model"
)

// startFromWords returns K atoms of the given norm, each a row of x less the mean.
func startFromWords(x []float32, d *model.Dictionary, norm float64, atoms int, seed uint64) []float32 {
	v := len(x) / d.Dim
	y := make([]float32, len(x))
	d.Center(y, x)
	for i := range v {
		row := y[i*d.Dim:][:d.Dim]
		var sq float64
		for _, e := range row {
			sq += float64(e) * float64(e)
		}
		for j := range row {
			row[j] = float32(float64(row[j]) / math.Sqrt(sq))
		}
	}
	rng := rand.New(rand.NewPCG(seed, 7))
	out := make([]float32, 0, atoms*d.Dim)
	take := func(i int) {
		for _, e := range y[i*d.Dim:][:d.Dim] {
			out = append(out, float32(float64(e)*norm))
		}
	}
	how := os.Getenv("OC_START")
	if how == "" {
		for _, i := range rng.Perm(v)[:atoms] {
			take(i)
		}
		return out
	}
	dist := make([]float64, v)
	for i := range dist {
		dist[i] = 2
	}
	next := rng.IntN(v)
	for range atoms {
		take(next)
		c := y[next*d.Dim:][:d.Dim]
		var total float64
		for i := range v {
			if dist[i] == 0 {
				continue
			}
			var dot float32
			for j, e := range y[i*d.Dim:][:d.Dim] {
				dot += e * c[j]
			}
			dist[i] = min(dist[i], max(0, 1-float64(dot)))
			total += dist[i]
		}
		dist[next] = 0
		if how == "farthest" {
			for i := range dist {
				if dist[i] > dist[next] {
					next = i
				}
			}
		} else {
			u := rng.Float64() * total
			for i := range dist {
				u -= dist[i]
				if u < 0 && dist[i] > 0 {
					next = i
					break
				}
			}
		}
	}
	return out
}
