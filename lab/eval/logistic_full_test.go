//go:build full

package eval

import (
	"context"
	"testing"

	"overcomplete/testonly"
	"overcomplete/vectors"
)

func TestRealDataAgainstScikitLearn(t *testing.T) {
	x := realVectors(t, "glove.6B.50d.9163.txt.gz")
	dir := testonly.Data(t, "eval")
	compareWithScikitLearn(t, NewDense("glove", x), dir, PaperTasks()[2:], []float64{1, 100, 1e6})
	compareWithScikitLearn(t, overcompleteCodes(x, 3000), dir, []string{"Comp"}, []float64{1e-3, 1, 1e6})
}

func realVectors(t *testing.T, name string) *vectors.Dense {
	t.Helper()
	x, _, err := vectors.Read(context.Background(), []string{testonly.Data(t, "vectors/"+name)}, vectors.ReadOptions{})
	testonly.Must(t, err)
	return x
}
