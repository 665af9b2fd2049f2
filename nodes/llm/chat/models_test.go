package chat

import (
	"errors"
	"slices"
	"testing"

	"sallyport/nodes"
)

func TestModels_ReadsTheIDsAndNothingElse(t *testing.T) {
	for name, row := range map[string]struct {
		body   string
		want   []string
		reason string
	}{
		"two":               {`{"object":"list","data":[{"id":"a","owned_by":"x"},{"id":"b:8b"}]}`, []string{"a", "b:8b"}, ""},
		"none":              {`{"data":[]}`, nil, ""},
		"without an id":     {`{"data":[{"name":"a"}]}`, nil, ""},
		"no list":           {`{"models":[]}`, nil, ReasonBadResponse},
		"data is no list":   {`{"data":{}}`, nil, ReasonBadResponse},
		"an id is a number": {`{"data":[{"id":1}]}`, nil, ReasonBadResponse},
		"a page":            {`<html>`, nil, ReasonBadResponse},
		"nothing":           {``, nil, ReasonBadResponse},
		"an error with 200": {`{"error":{"message":"no","code":"invalid_api_key"}}`, nil, ReasonProvider},
	} {
		got, err := Models([]byte(row.body))
		var u *nodes.Unavailable
		if !slices.Equal(got, row.want) || (err == nil) != (row.reason == "") || err != nil && (!errors.As(err, &u) || u.Reason != row.reason) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
