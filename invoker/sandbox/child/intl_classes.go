package child

// intlClasses are the classes of Intl, in the order of the specification.
func intlClasses() []*intlClass {
	return []*intlClass{
		dateTimeClass(), namesClass(), listClass(), numberClass(), pluralClass(), relativeClass(),
	}
}
