package openapitest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// OpenAPI Generator makes a Python package of the document, with a class for each tag. The
// pinned version is the last whose npm package contains the generator; later ones download
// it from Maven when they run. It reads OpenAPI 3.0, so the test converts the document.
// openapi-python-client, which reads 3.1, is not on npm.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	const needs = "run tools/need-python-client.sh, as make test does"
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("java is not installed: " + needs)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: " + needs)
	}
	if exec.CommandContext(t.Context(), python, "-c", "import urllib3, dateutil, six").Run() != nil {
		t.Skip("modules of the Python client are not installed: " + needs)
	}
	modules, dir := packages(t), t.TempDir()
	server := soustest.Start(t)
	document(t, server, dir)
	downgrade(t, filepath.Join(dir, "openapi.json"))
	jar := filepath.Join(modules, "@openapitools", "openapi-generator-cli", "bin", "openapi-generator.jar")
	run(t, dir, java, "-jar", jar, "generate", "-g", "python", "-i", "openapi.json", "-o", "client",
		"--package-name", "sous_client", "--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false")
	copyFile(t, filepath.Join(project, "client.py"), filepath.Join(dir, "client", "client.py"))
	run(t, filepath.Join(dir, "client"), python, "client.py", server.URL)
}

// downgrade converts a document of OpenAPI 3.1 to 3.0.
func downgrade(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	document["openapi"] = "3.0.3"
	delete(document["info"].(map[string]any)["license"].(map[string]any), "identifier")
	withoutNull(document)
	text, err = json.Marshal(document)
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
}

// withoutNull replaces the type null by nullable, and leaves out keywords that 3.0 lacks.
func withoutNull(value any) {
	switch in := value.(type) {
	case map[string]any:
		if types, ok := in["type"].([]any); ok {
			in["type"], in["nullable"] = types[0], true // huma lists null last
		}
		if choices, ok := in["oneOf"].([]any); ok && len(choices) == 2 {
			if second, _ := choices[1].(map[string]any); second["type"] == "null" {
				delete(in, "oneOf")
				in["allOf"], in["nullable"] = choices[:1], true
			}
		}
		for _, keyword := range []string{"contentEncoding", "contentMediaType"} {
			delete(in, keyword)
		}
		if _, list := in["examples"].([]any); list {
			delete(in, "examples")
		}
		for _, member := range in {
			withoutNull(member)
		}
	case []any:
		for _, member := range in {
			withoutNull(member)
		}
	}
}
