package embedded_test

import (
	"path/filepath"
	"testing"
	"time"

	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

func TestEngine_SurvivesTheSuite(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) enginetest.Harness {
		return enginetest.Harness{Engine: open(t, filepath.Join(t.TempDir(), "state"), embedded.Config{}), Now: time.Now}
	})
}

// open opens an engine on a state directory and closes it with the test.
func open(t testing.TB, dir string, config embedded.Config) *embedded.Engine {
	t.Helper()
	e, err := embedded.Open(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}
