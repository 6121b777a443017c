package train_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/internal/backend"
	"overcomplete/internal/modeldir"
	"overcomplete/internal/npy"
	"overcomplete/model"
	"overcomplete/testonly"
	"overcomplete/testonly/clitest"
	"overcomplete/train"
	"overcomplete/vectors"
)

type deviceWithoutEncoder struct{ cpu.Device }

func (deviceWithoutEncoder) Encoder(*model.Dictionary, encode.Options) (encode.Encoder, error) {
	return nil, errors.New("no encoder")
}

// File trains on some rows and encodes all. If encoding fails, it saves the dictionary, unless an earlier model exists.
func TestFile(t *testing.T) {
	x := sampleOfBest(t)
	for _, h := range []model.Recipe{
		model.Best{Common: model.Common{DictionarySteps: 8, Seed: 1}, Lambda: 0.04, TrainRows: 300, Order: model.Frequency},
		model.Best{Common: model.Common{DictionarySteps: 8, Seed: 1}, Lambda: 0.04, TrainRows: 300, Order: model.None},
		best(), samplePaper(),
	} {
		dir := filepath.Join(t.TempDir(), "model")
		o := train.FileOptions{Read: vectors.ReadOptions{MaxRows: x.Len()}, Factor: 2, Sparsity: 0.9}
		if h.String() == "paper" {
			o.Factor, o.Sparsity = 0, 0
		}
		rows := 0 // encoded rows
		o.Encoded = func(n int) { rows += n }
		var ready model.Training
		o.Ready = func(_ *vectors.Source, t model.Training) { ready = t }
		i, err := train.File(t.Context(), []string{sampleFile}, h, cpu.Device{}, dir, o)
		testonly.Must(t, err)
		if i.Encoding.Input.Rows != x.Len() || i.Training.Recipe != ready.Recipe || !reflect.DeepEqual(i.Training.Input, ready.Input) || (rows == x.Len()) != (i.Training.Input.Rows < x.Len()) {
			t.Errorf("%+v", i)
		}
		if h, is := i.Training.Recipe.(model.Best); is && o.Factor > 0 && (h.Atoms != 2*x.Dim || h.Nonzeros != x.Dim/5) {
			t.Errorf("%d nonzeros of %d atoms", h.Nonzeros, h.Atoms)
		}
		m, err := model.Open(dir)
		testonly.Must(t, err)
		want, err := train.Fit(t.Context(), x, i.Training.Recipe, cpu.Device{}, train.Options{})
		if err != nil || !reflect.DeepEqual(m.Codes, want.Codes) || !reflect.DeepEqual(m.Dictionary, want.Dictionary) {
			t.Errorf("%+v: the bits differ from training in memory, error %v", h, err)
		}
		if h.String() == "paper" {
			continue
		}

		o.Replace = true
		if is, err := withoutEncoder(t, h, dir, o, dir+" is unchanged"); err != nil || !reflect.DeepEqual(is.Codes, m.Codes) {
			t.Errorf("the earlier model has changed; error %v", err)
		}
		os.RemoveAll(dir)
		is, err := withoutEncoder(t, h, dir, o, dir+" has the dictionary")
		if err != nil || is.Codes != nil {
			t.Fatalf("%+v, error %v", is, err)
		}
		if again, err := encode.Model(t.Context(), is, x, cpu.Device{}, encode.Defaults(is.Info)); err != nil || !reflect.DeepEqual(again.Codes, m.Codes) {
			t.Errorf("other codes of the saved dictionary, error %v", err)
		}
	}
}

// Training and encoding write the same files with 1 and 16 workers, except for the durations in model.json.
func TestFileWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	x := clitest.Vectors(2*encode.Block+100, 6)
	var array bytes.Buffer
	testonly.Must(t, npy.Write(&array, []int{x.Len(), x.Dim}, x.Data))
	h := train.Best()
	h.Atoms, h.Nonzeros, h.TrainRows, h.Topics = 24, 4, 9000, 3
	seconds := regexp.MustCompile(`(seconds": )[^,\n]*`)
	for name, content := range map[string][]byte{"x.npy": array.Bytes(), "x.txt": clitest.Text(x)} {
		path := filepath.Join(t.TempDir(), name)
		testonly.Must(t, os.WriteFile(path, content, 0o666))
		want := map[string][]byte{}
		for _, workers := range []int{1, 16} {
			runtime.GOMAXPROCS(workers)
			trained, encoded := filepath.Join(t.TempDir(), "trained"), filepath.Join(t.TempDir(), "encoded")
			_, err := train.File(t.Context(), []string{path}, h, cpu.Device{}, trained, train.FileOptions{})
			testonly.Must(t, err)
			m, err := model.OpenDictionary(trained)
			testonly.Must(t, err)
			_, _, err = encode.File(t.Context(), m, []string{path}, encoded, cpu.Device{}, encode.Defaults(m.Info), encode.FileOptions{})
			testonly.Must(t, err)
			for _, dir := range []string{trained, encoded} {
				files, err := os.ReadDir(dir)
				testonly.Must(t, err)
				for _, f := range files {
					got := testonly.ReadFile(t, filepath.Join(dir, f.Name()))
					got = seconds.ReplaceAll(got, []byte("${1}0"))
					if key := filepath.Base(dir) + "/" + f.Name(); workers == 1 {
						want[key] = got
					} else if !bytes.Equal(got, want[key]) {
						t.Errorf("%s: %s differs with %d workers", name, key, workers)
					}
				}
			}
		}
		if len(want) != 12 {
			t.Errorf("%s: %d files, want 6 in each directory", name, len(want))
		}
	}
}

// withoutEncoder trains, fails to encode, and opens what is left.
func withoutEncoder(t *testing.T, h model.Recipe, dir string, o train.FileOptions, left string) (*model.Model, error) {
	t.Helper()
	_, err := train.File(t.Context(), []string{sampleFile}, h, deviceWithoutEncoder{}, dir, o)
	if e, ok := errors.AsType[*train.LeftError](err); !ok || e.Resumable || !strings.HasPrefix(e.Left, left) || e.Err.Error() != "no encoder" {
		t.Errorf("error %v", err)
	}
	return model.Open(dir)
}

// unclosable is a device whose trainers and encoders fail to close.
type unclosable struct{ cpu.Device }

type unclosableTrainer struct{ backend.Trainer }

type unclosableEncoder struct{ encode.Encoder }

var errClose = errors.New("not closed")

func (d unclosable) Trainer(p backend.Problem) (backend.Trainer, error) {
	t, err := d.Device.Trainer(p)
	return unclosableTrainer{t}, err
}

func (d unclosable) Encoder(dictionary *model.Dictionary, o encode.Options) (encode.Encoder, error) {
	e, err := d.Device.Encoder(dictionary, o)
	return unclosableEncoder{e}, err
}

func (unclosableTrainer) Close() error { return errClose }
func (unclosableEncoder) Close() error { return errClose }

// If closing a device fails, the model is still saved: a warning or an error says so.
func TestFileOfUnclosable(t *testing.T) {
	for _, h := range []model.Recipe{model.Best{Common: model.Common{DictionarySteps: 8, Seed: 1}, Lambda: 0.04, TrainRows: 300, Order: model.Frequency}, samplePaper()} {
		dir := filepath.Join(t.TempDir(), "model")
		said := ""
		o := train.FileOptions{Read: vectors.ReadOptions{MaxRows: 700}, Note: func(line string) { said += line }}
		if _, err := train.File(t.Context(), []string{sampleFile}, h, unclosable{}, dir, o); err != nil {
			said += err.Error()
		}
		if m, err := model.Open(dir); err != nil || m.Codes == nil || m.Codes.Rows != 700 || !strings.HasSuffix(said, errClose.Error()) {
			t.Errorf("%s: %s, error %v", h, said, err)
		}
	}
}

// Checkpoints and the trained model don't replace a model that another program has written in place of the checkpoint.
// With Resume and without a first checkpoint, they don't replace a model that appears later.
func TestCheckpointsReplaceTheirOwn(t *testing.T) {
	h := train.Paper()
	h.Atoms, h.Epochs, h.Lambda = 20, 6, 0.01
	dir := filepath.Join(t.TempDir(), "model")
	precious := fit(t, sampleOfBest(t), best(), train.Options{})
	var warnings []string
	o := train.FileOptions{Read: vectors.ReadOptions{MaxRows: 200}, Checkpoint: time.Nanosecond}
	o.Note = func(line string) {
		if strings.Contains(line, "warning: checkpoint") {
			warnings = append(warnings, line)
		}
	}
	at := 3
	o.Epoch = func(e model.Epoch) {
		if e.Epoch == at {
			testonly.Must(t, errors.Join(os.RemoveAll(dir), precious.Save(dir, false)))
		}
	}
	_, err := train.File(t.Context(), []string{sampleFile}, h, cpu.Device{}, dir, o)
	testonly.ErrorSays(t, "saved in its place", err, "is not the checkpoint")
	if n := len(warnings); n != 3 || !strings.Contains(warnings[0], "checkpoint after epoch 3: ") || !strings.Contains(warnings[0], "is not the checkpoint of this training") {
		t.Errorf("%d warnings: %q", n, warnings)
	}
	testonly.Must(t, os.RemoveAll(dir))
	at, o.Resume = 1, true
	_, err = train.File(t.Context(), []string{sampleFile}, h, cpu.Device{}, dir, o)
	testonly.ErrorSays(t, "saved in its place", err, "already exists")
	if is, err := model.Open(dir); err != nil || !reflect.DeepEqual(is.Dictionary, precious.Dictionary) {
		t.Errorf("the precious model is gone: %v", err)
	}
	o.Epoch, o.Replace, o.Resume = nil, true, false
	_, err = train.File(t.Context(), []string{sampleFile}, h, cpu.Device{}, dir, o)
	testonly.Must(t, err)
}

// Checkpoints and models that can't be read or contain other files are not replaced, and the error says that the
// checkpoint remains.
func TestCheckpointRemains(t *testing.T) {
	for _, h := range []model.Recipe{samplePaper(), model.Best{Common: model.Common{DictionarySteps: 8, Seed: 1}, Lambda: 0.04, TrainRows: 300, Order: model.Frequency}} {
		for name, want := range map[string]string{
			"notes.txt":       `because it has "notes.txt"`,
			modeldir.Info:     modeldir.Info + ": is a directory",
			modeldir.Progress: modeldir.Progress + ": is a directory",
		} {
			dir := filepath.Join(t.TempDir(), "model")
			o := train.FileOptions{Read: vectors.ReadOptions{MaxRows: 700}, Checkpoint: time.Nanosecond}
			path := filepath.Join(dir, name)
			o.Epoch = func(e model.Epoch) {
				if e.Epoch == 2 {
					testonly.Must(t, errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o777)))
				}
			}
			_, err := train.File(t.Context(), []string{sampleFile}, h, cpu.Device{}, dir, o)
			_, left := errors.AsType[*train.LeftError](err)
			if err == nil || !strings.Contains(err.Error(), want) || left == (name == modeldir.Progress) { // damages the checkpoint
				t.Errorf("%s, %s: error %v, want %q", h, name, err, want)
			}
		}
	}
}

// The order of a file is inferred from more rows than the training rows.
func TestFileOrder(t *testing.T) {
	var text strings.Builder
	for i := range 400 {
		word := []byte{'a' + byte(i/26), 'a' + byte(i%26)} // the first 40 are sorted
		if i >= 40 {
			word = []byte{'a' + byte(7*i%26), 'a' + byte(11*i%25), 'a' + byte(i%23)}
		}
		fmt.Fprintf(&text, "%s %d %d %d\n", word, 1+i%7, 2-i%5, i%3)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.txt")
	testonly.Must(t, os.WriteFile(path, []byte(text.String()), 0o666))
	h := train.Best()
	h.Atoms = 2
	info, err := train.File(t.Context(), []string{path}, h, cpu.Device{}, filepath.Join(dir, "model"), train.FileOptions{})
	if r := info.Training.Recipe; err != nil || r.(model.Best).Order != model.Frequency || r.(model.Best).TrainRows != 40 {
		t.Errorf("%+v, error %v", info.Training, err)
	}
}

// The training sample of many rows without an order doesn't depend on their split into files.
func TestFileSample(t *testing.T) {
	const rows, dim = 100_500, 2
	dir := t.TempDir()
	data := clitest.Vectors(rows, dim).Data
	var want *model.Model
	for _, ends := range [][]int{{rows}, {7, 80_000, rows}} {
		var paths []string
		lo := 0
		for _, hi := range ends {
			path := filepath.Join(dir, fmt.Sprintf("%d-%d.npy", len(ends), hi))
			var file bytes.Buffer
			testonly.Must(t, npy.Write(&file, []int{hi - lo, dim}, data[lo*dim:hi*dim]))
			testonly.Must(t, os.WriteFile(path, file.Bytes(), 0o666))
			paths, lo = append(paths, path), hi
		}
		h := train.Best()
		h.Atoms, h.Epochs = 4, 1
		out := filepath.Join(dir, fmt.Sprint(len(ends)))
		_, err := train.File(t.Context(), paths, h, cpu.Device{}, out, train.FileOptions{})
		testonly.Must(t, err)
		m, err := model.Open(out)
		testonly.Must(t, err)
		if r := m.Info.Training.Recipe.(model.Best); r.Order != model.None || r.TrainRows != 100_000 || m.Info.Training.Input.Rows != 100_000 || m.Info.Rows() != rows {
			t.Errorf("%+v", m.Info)
		}
		if want == nil {
			want = m
		}
		if !reflect.DeepEqual(m.Dictionary, want.Dictionary) || !reflect.DeepEqual(m.Codes, want.Codes) {
			t.Errorf("the model of %d files differs from the model of one", len(ends))
		}
	}
}
