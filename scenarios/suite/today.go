package suite

import "sallyport/scenarios"

func loadCases(file string, o scenarios.LoadOptions) ([]*scenarios.Scenario, error) {
	s, err := scenarios.LoadFile(file, o)
	if err != nil {
		return nil, err
	}
	return []*scenarios.Scenario{s}, nil
}

func mismatches(r scenarios.Result) []Failure {
	var all []Failure
	for _, m := range r.Mismatches {
		all = append(all, Failure{File: r.File, Message: m})
	}
	return all
}
