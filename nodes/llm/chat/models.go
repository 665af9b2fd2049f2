package chat

import "sallyport/tools/strictjson"

// Models reads the list of an endpoint's models: the id of each element of data, whatever
// else it holds. An error is a [*nodes.Unavailable].
func Models(body []byte) ([]string, error) {
	if err := strictjson.Check(body, responseLimits); err != nil {
		return nil, badJSON(err)
	}
	o, err := readObject(body)
	if err != nil {
		return nil, badJSON(err)
	}
	if err := errorIn(o); err != nil {
		return nil, err
	}
	if !o.has("data") {
		return nil, bad("it holds no list of models")
	}
	list, err := o.list("data")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, it := range list {
		name, ok, err := it.text("id")
		if err != nil {
			return nil, err
		}
		if ok {
			names = append(names, name)
		}
	}
	return names, nil
}
