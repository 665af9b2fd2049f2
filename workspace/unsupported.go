//go:build !linux && !darwin

package workspace

// On this system files cannot be held as SPEC D6 demands. No Workspace exists, so that what is below
// open is never reached; it keeps the package whole.

func open(root string, _ calls) (*Workspace, error) {
	return nil, &OpenError{Part: "root", Path: root, Err: ErrUnsupported}
}

type draft struct{ file identity }

func (*draft) fill([]byte) error                  { return ErrUnsupported }
func (*draft) link(string) error                  { return ErrUnsupported }
func (*draft) settle() error                      { return ErrUnsupported }
func (*draft) discard(error) (SaveOutcome, error) { return SaveUnknown, ErrUnsupported }
func (calls) newDraft(int) (*draft, error)        { return nil, ErrUnsupported }
func (calls) openFile(int, string) (int, error)   { return -1, ErrUnsupported }
func (calls) entries(int, int) ([]string, error)  { return nil, ErrUnsupported }
func examine(int) (examination, error)            { return examination{}, ErrUnsupported }
func readUpTo(int, int) ([]byte, error)           { return nil, ErrUnsupported }
func closeAll(...int) []error                     { return nil }

func openLedgerFolder(string, *Workspace) (int, error) { return -1, ErrUnsupported }
func openLock(int) (int, error)                        { return -1, ErrUnsupported }
func tryLock(int) (bool, error)                        { return false, ErrUnsupported }
func readEntry(int, string, int) ([]byte, error)       { return nil, ErrUnsupported }
func writeEntry(int, string, string) error             { return ErrUnsupported }
