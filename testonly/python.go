package testonly

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// PythonPath returns the Python of the environment variable OVERCOMPLETE_PYTHON, which must have the packages of
// .ci/requirements.txt. If the variable is not set, the test is skipped.
func PythonPath(t testing.TB) string {
	t.Helper()
	python := os.Getenv("OVERCOMPLETE_PYTHON")
	if python == "" {
		t.Skip("needs Python with the packages of .ci/requirements.txt: set OVERCOMPLETE_PYTHON")
	}
	return python
}

// Python runs a program with [PythonPath]. It passes given as JSON on the standard input and decodes the output, which
// must be JSON.
func Python[T any](t testing.TB, program string, given any) (got T) {
	t.Helper()
	stdin, err := json.Marshal(given)
	Must(t, err)
	cmd := exec.Command(PythonPath(t), "-c", program)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, os.Stderr
	cmd.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1")
	Must(t, Run(cmd))
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return got
}
