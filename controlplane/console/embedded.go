//go:build console

package console

import _ "embed"

// archive is what tools/console makes of the folder console. `make build` presents it to the
// compiler as a file of this folder.
//
//go:embed console.zip
var archive []byte
