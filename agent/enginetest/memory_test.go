package enginetest_test

import (
	"testing"
	"time"

	"sallyport/agent/enginetest"
)

func TestMemory(t *testing.T) {
	enginetest.Run(t, func(*testing.T) enginetest.Harness {
		return enginetest.Harness{Engine: enginetest.NewMemory(nil, nil), Now: time.Now}
	})
}
