package e2e

import (
	"encoding/json"
	"testing"

	"overcomplete/internal/testonly/clitest"
	"overcomplete/internal/testonly/realdata"
)

// Method B's dimensions are more coherent than random directions, in the eyes of
// vectors learned from other text.
func TestIntrusionAutoRealData(t *testing.T) {
	t.Parallel()
	x, glove := realdata.Path(t, "vectors/googlenews.300d.8000.txt.gz"), realdata.Path(t, "vectors/glove.6B.50d.9163.txt.gz")
	dir := clitest.New(t)
	dir.MustRun(t, "paper train "+x+" -o model --method B --max-words 3000 -k 600 --quiet")
	stdout, _ := dir.MustRun(t, "intrusion auto model --input "+x+" --reference "+glove+" --json")
	var r struct {
		Sets []struct {
			Words        int
			Any, Matched struct{ Low, High float64 }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	model, random := r.Sets[0], r.Sets[1]
	if model.Words < 2000 || random.Any.Low <= .2 || model.Any.Low <= random.Any.High || model.Matched.Low <= random.Matched.High {
		t.Errorf("%+v", r)
	}
}
