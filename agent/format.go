package agent

// versionForks is the format that first holds usage from a cache, costs, forks and
// substitutes. A run that was begun before it must stay readable to a program that
// knows no more than the run's own format.
const versionForks = 2

// inFormat is what a run of a format keeps of what was said. Nothing that the run
// depends on is left out.
func inFormat(version int, p payload) payload {
	if version >= versionForks {
		return p
	}
	switch p := p.(type) {
	case Turned:
		p.Usage.Cached = 0
		return p
	case TurnRefused:
		p.Usage.Cached = 0
		return p
	}
	return p
}

// beyond reports whether what was said has no form in the format.
func beyond(version int, p payload) bool {
	if version >= versionForks {
		return false
	}
	switch p := p.(type) {
	case Spec:
		return p.Prices != nil || p.Budget.Cost != 0 || p.Fork != nil
	case Extend:
		return p.Budget.Cost != 0
	case Substitute:
		return true
	}
	return false
}
