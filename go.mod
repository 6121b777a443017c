module overcomplete

go 1.26.0

require (
	github.com/apache/arrow-go/v18 v18.8.0 // Arrow files
	github.com/chewxy/hm v1.0.0 // types of our own Gorgonia operations
	github.com/chromedp/cdproto v0.159.0 // the browser protocol, in tests of the explorer
	github.com/chromedp/chromedp v0.22.1 // a headless browser, in tests of the explorer
	github.com/google/flatbuffers v25.12.19+incompatible // Arrow headers, checked before arrow-go trusts them
	github.com/klauspost/compress v1.20.3 // gzip and zstd of vector files, snappy of Parquet pages
	github.com/klauspost/cpuid/v2 v2.4.2 // the processor's name in benchmarks
	github.com/parquet-go/parquet-go v0.32.0 // writes Parquet files and reads their headers; arrow-go's Parquet is three times as large
	github.com/pierrec/lz4/v4 v4.1.29 // LZ4 of Parquet pages
	github.com/schollz/progressbar/v3 v3.19.1 // progress bars
	github.com/spf13/cobra v1.10.2 // commands, flags, help, completion; manual pages, with go-md2man
	github.com/spf13/pflag v1.0.9 // the flags of cobra
	go4.org/unsafe/assume-no-moving-gc v0.0.0-20231121144256-b99613f794b6 // indirect; lets Gorgonia start on current Go
	golang.org/x/sys v0.49.0 // processor features, memory limits, huge pages, atomic exchange of directories
	golang.org/x/term v0.47.0 // detects terminals
	gonum.org/v1/gonum v0.17.0 // linear algebra, statistics; finite differences in tests
	gonum.org/v1/plot v0.17.0 // figures
	gorgonia.org/cu v0.9.6 // CUDA driver API, with -tags gpu
	gorgonia.org/gorgonia v0.9.18 // expression graphs, symbolic gradients, the tape machine
	gorgonia.org/tensor v0.9.24 // tensors of Gorgonia
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/andybalholm/brotli v1.2.7 // indirect
	github.com/apache/arrow/go/arrow v0.0.0-20211112161151-bc219186db40 // indirect
	github.com/awalterschulze/gographviz v2.0.3+incompatible // indirect
	github.com/chewxy/math32 v1.10.1 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/goccy/go-json v0.10.6 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/golang/protobuf v1.5.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/leesper/go_rng v0.0.0-20190531154944-a612b043e353 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/parquet-go/bitpack v1.0.0 // indirect
	github.com/parquet-go/jsonlite v1.0.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/twpayne/go-geom v1.6.1 // indirect
	github.com/xtgo/set v1.0.0 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/exp v0.0.0-20260112195511-716be5621a96 // indirect
	golang.org/x/image v0.47.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/xerrors v0.0.0-20200804184101-5ec99f83aff1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
	gorgonia.org/dawson v1.2.0 // indirect
	gorgonia.org/vecf32 v0.9.0 // indirect
	gorgonia.org/vecf64 v0.9.0 // indirect
)
