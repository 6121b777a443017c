//go:build gpu && linux

package e2e

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/testonly/emulator"
)

// gpuProgram holds the paths of the program with GPU support and of an emulated driver.
type gpuProgram struct{ exe, library string }

// run runs the program with further environment variables.
func (p gpuProgram) run(t *testing.T, dir clitest.Dir, line string, env ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(p.exe, strings.Fields(line)...)
	cmd.Dir = string(dir)
	cmd.Env = append(append(os.Environ(), "OVERCOMPLETE_LIBCUDA="+p.library), env...)
	return clitest.Output(t, cmd)
}

func TestGPUProgram(t *testing.T) {
	t.Parallel()
	library, err := emulator.Build()
	testonly.Must(t, err)
	p := gpuProgram{filepath.Join(t.TempDir(), "overcomplete"), library}
	if out, err := exec.Command("go", "build", "-tags", "gpu", "-o", p.exe, "overcomplete").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir, _ := clitest.Sample(t)
	dir.Write(t, "large.txt", clitest.Text(clitest.Vectors(600, 12)))
	before := dir.Tree(t)

	t.Run("needs no driver", func(t *testing.T) {
		out, err := exec.Command("ldd", p.exe).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "libc.") || strings.Contains(string(out), "cuda") {
			t.Errorf("%v: %s", err, out)
		}
	})

	t.Run("devices", func(t *testing.T) {
		code, stdout, stderr := p.run(t, dir, "devices --json", "EMULATED_DEVICES=2")
		if code != 0 || stderr != "" {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		var d struct{ GPUs []struct{ Name, UUID string } }
		if err := json.Unmarshal([]byte(stdout), &d); err != nil || len(d.GPUs) != 2 || d.GPUs[1].Name != "Emulated GPU" || d.GPUs[1].UUID == d.GPUs[0].UUID {
			t.Errorf("%v: %s", err, stdout)
		}
	})

	t.Run("trains on the chosen device", func(t *testing.T) {
		for flags, want := range map[string][2]string{
			"--device cpu":                   {"on the CPU, ", "cpu "},
			"--device cuda":                  {"on GPU 0, Emulated GPU, tf32\n", "cuda 8.0 tf32"},
			"--device auto":                  {"on GPU 0, Emulated GPU, tf32\n", "cuda 8.0 tf32"},
			"--device cuda --precision fp16": {"on GPU 0, Emulated GPU, fp16\n", "cuda 8.0 fp16"},
		} {
			code, _, stderr := p.run(t, dir, "paper train large.txt -o trained --epochs 1 --max-rows 200 --force "+flags)
			if code != 0 || !strings.Contains(stderr, "training "+want[0]) {
				t.Fatalf("%s: exit code %d: %s", flags, code, stderr)
			}
			if device := dir.Model(t, "trained").Info.Training.Device; !strings.HasPrefix(device, want[1]) {
				t.Errorf("%s: trained on %q, want %q", flags, device, want[1])
			}
		}
		testonly.Must(t, os.RemoveAll(dir.Path("trained")))
	})

	t.Run("encodes as on the CPU", func(t *testing.T) { encodesOnGPU(t, p) })

	for _, tt := range []struct {
		name, line, env string
		code            int
		want            string // in the one line of standard error
	}{
		{"no driver", "--device cuda", "OVERCOMPLETE_LIBCUDA=./none.so", clitest.Usage, "none.so"},
		{"no GPU", "--device cuda", "EMULATED_FAIL_INIT=100", clitest.Usage, "docker run --gpus all"},
		{"other libcuda", "--device cuda", "EMULATED_FAIL_INIT=804", clitest.Usage, "take its folder from LD_LIBRARY_PATH"},
		{"taken", "--device cuda", "EMULATED_FAIL_CONTEXT=46", clitest.Usage, "another process uses the GPU alone"},
		{"no such device", "--device cuda:5", "", clitest.Usage, "no such GPU (got 5"},
		{"old device", "--device cuda", "EMULATED_CAPABILITY=7.5", clitest.Usage, "7.5"},
		{"no memory", "--device cuda", "EMULATED_MEMORY=5000000", clitest.Usage, " MB of 5.0 MB are free"},
		{"no memory to start", "--device cuda", "EMULATED_FAIL_CONTEXT=2", clitest.Usage, "nvidia-smi lists the processes"},
		{"no compiler", "--device cuda", "EMULATED_FAIL_MODULE=221", clitest.Usage, "install the driver's compiler"},
		{"old compiler", "--device cuda", "EMULATED_FAIL_MODULE=222", clitest.Usage, "update the NVIDIA driver"},
		{"no context", "--device cuda", "EMULATED_FAIL_CONTEXT=999", clitest.Usage, "nvidia-uvm"},
		{"failed kernel", "--device cuda", "EMULATED_FAIL_LAUNCH=9", clitest.Failed, "LaunchFailed"},
		{"lost device", "--device cuda", "EMULATED_LOSE_DEVICE=30", clitest.Failed, "kernels: "},
		{"failed kernel, auto", "", "EMULATED_FAIL_LAUNCH=9", clitest.Failed, "LaunchFailed"},
		{"words' codes on the CPU only", "--device cuda --authors-order", "", clitest.Usage, "the authors' order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := p.run(t, dir, "paper train large.txt -o model --quiet "+tt.line, tt.env)
			if code != tt.code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, want %d; standard error %q, want one line with %q", code, tt.code, stderr, tt.want)
			}
			dir.Unchanged(t, before)
			if tt.line != "--device cuda" || tt.code != clitest.Usage {
				return
			}
			// --device auto trains on the CPU, and says why.
			defer os.RemoveAll(dir.Path("model"))
			code, _, stderr = p.run(t, dir, "paper train large.txt -o model --epochs 1", tt.env)
			line, _, _ := strings.Cut(stderr[strings.Index(stderr, "training on the CPU"):], "\n")
			if code != 0 || !strings.Contains(line, tt.want) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			dir.Model(t, "model")
		})
	}
}

// encodesOnGPU encodes 600 words with a dictionary trained on in.txt, on each device.
func encodesOnGPU(t *testing.T, p gpuProgram) {
	dir, _ := clitest.Sample(t)
	dir.Write(t, "large.txt", clitest.Text(clitest.Vectors(600, 8)))
	must := func(line string, env ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := p.run(t, dir, line, env...)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, stderr)
		}
		return stdout, stderr
	}
	for _, method := range []string{"A", "B"} {
		must("paper train in.txt -o m --force --center --epochs 10 --device cpu --method " + method)
		encoded := make(map[string]*model.Model)
		for _, c := range []struct{ name, flags, says, device string }{
			{"cpu", "--device cpu", "encoding on the CPU\n", "cpu "},
			{"auto", "", "encoding on GPU 0, Emulated GPU\n", "cuda"},
		} {
			_, stderr := must("encode m large.txt --force -o " + c.name + " " + c.flags)
			m := dir.Model(t, c.name)
			if encoded[c.name] = m; !strings.HasPrefix(stderr, c.says) || !strings.HasPrefix(m.Info.Encoding.Device, c.device) {
				t.Errorf("%s: encoded on %q, saying %q", c.name, m.Info.Encoding.Device, stderr)
			}
		}
		// The search yields the same bits. The polish differs by roundings of float32.
		cpu, gpu := encoded["cpu"], encoded["auto"]
		if !slices.Equal(gpu.Codes.Ptr, cpu.Codes.Ptr) || !slices.Equal(gpu.Codes.Index, cpu.Codes.Index) {
			t.Errorf("method %s: nonzeros of the GPU differ from the CPU's", method)
		}
		if d := gpu.Info.Encoding.Objective/cpu.Info.Encoding.Objective - 1; math.Abs(d) > 1e-6 {
			t.Errorf("method %s: objective %v, want %v", method, gpu.Info.Encoding.Objective, cpu.Info.Encoding.Objective)
		}

		must("encode m large.txt --force -o s1 --shard 1/2")
		must("encode m large.txt --force -o s2 --shard 2/2")
		must("encode m large.txt --force -o other --shard 2/2 --device cpu")
		must("merge s1 s2 --force -o merged")
		if !maps.Equal(clitest.Dir(dir.Path("merged")).Tree(t), clitest.Dir(dir.Path("auto")).Tree(t)) {
			t.Errorf("method %s: merged shards are not what was encoded at once", method)
		}
		code, _, stderr := p.run(t, dir, "merge s1 other --force -o merged")
		if code != clitest.Usage || !strings.Contains(stderr, "in its kind of processor (got cpu ") {
			t.Errorf("method %s: exit code %d, %s", method, code, stderr)
		}

		must("train in.txt -o best --force --epochs 5 --method " + method)
		if got := dir.Model(t, "best").Info; got.Training.Device != "cuda 8.0" || got.Encoding.Device != "cuda" {
			t.Errorf("method %s: the recipe best trained on %q and encoded on %q", method, got.Training.Device, got.Encoding.Device)
		}
	}

	testonly.Must(t, os.CopyFS(dir.Path("zero"), os.DirFS(dir.Path("m"))))
	dictionary := dir.Read(t, "zero/dictionary.npy")
	clear(dictionary[128:])
	dir.Write(t, "zero/dictionary.npy", dictionary)
	before := dir.Tree(t)
	if code, _, stderr := p.run(t, dir, "encode zero large.txt -o out"); code != clitest.Usage || stderr != "overcomplete: zero: nothing can be encoded: the dictionary is zero\n" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	for _, tt := range []struct {
		line, env string
		code      int
		want      string
	}{
		{"--device cuda", "EMULATED_MEMORY=4000000", clitest.Usage, "not enough memory on GPU 0"},
		{"--device cuda", "EMULATED_FAIL_LAUNCH=3", clitest.Failed, "LaunchFailed"},
		{"", "EMULATED_LOSE_DEVICE=3", clitest.Failed, "kernels: "},
		{"--device cuda --exact", "", clitest.Usage, "--exact runs on the CPU only"},
	} {
		code, stdout, stderr := p.run(t, dir, "encode m large.txt -o out --quiet "+tt.line, tt.env)
		if code != tt.code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s, %s: exit code %d, want %d; standard error %q, want one line with %q", tt.line, tt.env, code, tt.code, stderr, tt.want)
		}
		dir.Unchanged(t, before)
	}
	if _, stderr := must("encode m large.txt --force -o out --exact"); !strings.HasPrefix(stderr, "encoding on the CPU (not supported on GPUs: exact codes)\n") {
		t.Errorf("standard error %q", stderr)
	}
}
