package testonly

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// Python runs a program with the Python of the environment variable OVERCOMPLETE_PYTHON, which must have the packages of
// .ci/requirements.txt. It passes given as JSON on the standard input and decodes the output, which must be JSON. If the
// variable is not set, the test is skipped.
func Python[T any](t testing.TB, program string, given any) (got T) {
	t.Helper()
	python := os.Getenv("OVERCOMPLETE_PYTHON")
	if python == "" {
		t.Skip("needs Python with the packages of .ci/requirements.txt: set OVERCOMPLETE_PYTHON")
	}
	stdin, err := json.Marshal(given)
	Must(t, err)
	cmd := exec.Command(python, "-c", program)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, os.Stderr
	cmd.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1")
	Must(t, Run(cmd))
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return got
}
