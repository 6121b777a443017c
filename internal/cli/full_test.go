//go:build full

package cli

func init() {
	damages = 60
	pairLines = append(pairLines,
		"train DIR/in.txt -o DIR/out",
		"train DIR/table.arrow -o DIR/out",
		"paper train DIR/in.txt -o DIR/out",
		"encode DIR/model DIR/in.txt -o DIR/out",
		"eval DIR/x.txt --data DIR/data",
		"paper tune DIR/x.txt --data DIR/data -o DIR/out --lambda 0.1 --factor 1",
		"devices",
	)
}
