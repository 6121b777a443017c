package cpu_test

import (
	"context"
	"fmt"
	"log"

	"overcomplete/cpu"
	"overcomplete/encode"
	"overcomplete/model"
)

// If the atoms are orthonormal, the lasso's code is the products with the atoms, shrunk by λ/2.
func ExampleDevice_Encoder() {
	dictionary := &model.Dictionary{Dim: 3, Atoms: []float32{
		1, 0, 0,
		0, 1, 0,
		0, 0, 1,
	}}
	o := encode.Options{Lambda: 1, Gap: 1e-4}
	e, err := cpu.Device{}.Encoder(dictionary, o)
	if err != nil {
		log.Fatal(err)
	}
	codes, err := encode.Rows(context.Background(), e, []float32{
		2, -3, 0.2,
		0, 0.4, 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	for i := range codes.Rows {
		columns, values := codes.Row(i)
		fmt.Printf("%v %.3f, ‖y − aD‖² = %.3f\n", columns, values, codes.Loss[i])
	}
	// Output:
	// [0 1] [1.500 -2.500], ‖y − aD‖² = 0.540
	// [2] [0.501], ‖y − aD‖² = 0.409
}
