package embedded

// AddMigration makes this process a later version, which knows one schema more. It
// returns the number of that schema.
func AddMigration(script string) int {
	migrations = append(migrations[:len(migrations):len(migrations)], script)
	return len(migrations)
}
